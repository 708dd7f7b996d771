# SPDX-License-Identifier: MIT
"""Queries that accept runs, the choice among them, and the script for unique keys that are taken.

Insert and look-up of a key are one statement on one snapshot. A run that took the key after the
snapshot stops the insert and is not among the rows; then the same statement is sent again. It
recognises earlier inserts by their ids, so a lost answer is handled the same way. A statement that
had to wait may name a holder that has ended meanwhile, so holders are read again.
"""

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from byrote.core.duration import micros
from byrote.core.errors import KeyContended
from byrote.core.memo import memo_key
from byrote.core.policy import ONCE
from byrote.core.spec import Delivery, Spec
from byrote.store.query import Query, Resend

_encode = msgspec.json.Encoder().encode


type Numbered = tuple[str, Spec]
"""A spec and the id that its sender chose for the run."""
type Codes = Mapping[tuple[str, int], str]
"""Code hashes of tasks with a memo, by name and version."""
NO_CODES: Final[Codes] = {}


def accept(specs: Sequence[Numbered], codes: Codes = NO_CODES) -> Query[Any]:
    """Return the cheapest statement that accepts all of these specs.

    The only place that chooses it. `until_accepted` runs it, whichever it is.
    """
    if codes and any((spec.task, spec.version) in codes for _, spec in specs):
        return enqueue_memo(specs, codes)
    for _, spec in specs:
        if spec.delivery.unique_key is not None:
            return enqueue_unique(specs)
    return enqueue_one(*specs[0]) if len(specs) == 1 else enqueue(specs)


def enqueue(specs: Sequence[Numbered]) -> Query[datetime]:
    """Accept specs under ids their sender chose: all of them or none; returns the moment."""
    return Query("enqueue", batch(described(specs)), lambda row: row[2], Resend.BY_ID)


def described(specs: Sequence[Numbered]) -> list[dict[str, Any]]:
    """Return the parameters of each spec for the statements that accept them."""
    deliveries: dict[int, dict[str, Any]] = {}
    sent = []
    for run_id, spec in specs:
        # Thousands of specs usually share one Delivery object; describe it once per batch.
        delivery = deliveries.get(id(spec.delivery))
        if delivery is None:
            delivery = deliveries[id(spec.delivery)] = _delivery(spec.delivery)
        sent.append(_identity(run_id, spec) | delivery)
    return sent


def batch(sent: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of a statement that accepts these."""
    # When the answer is lost, `first` shows whether the batch was accepted (is_accepted.sql).
    return {"runs": _encode(sent).decode(), "first": sent[0]["id"] if sent else None}


def enqueue_one(run_id: str, spec: Spec) -> Query[datetime]:
    """Accept one spec under an id its sender chose, at the least cost; returns the moment."""
    args = {**_DEFAULTS, **_identity(run_id, spec), **_delivery(spec.delivery)}
    if args["labels"] is not None:
        args["labels"] = _encode(args["labels"]).decode()
    args |= {"hash": spec.digest, "first": run_id}
    return Query("enqueue_one", args, lambda row: row[0], Resend.BY_ID)


_DEFAULTS: Mapping[str, Any] = {
    "priority": 0, "due": None, "delay_us": None, "timeout_ms": None, "retry": None, "labels": None,
    "trace": None,
}  # fmt: skip


def is_accepted(run_id: str) -> Query[bool]:
    """Whether a run has been accepted, in whichever table it is."""
    return Query("is_accepted", {"id": run_id}, lambda row: bool(row[0]))


def _identity(run_id: str, spec: Spec) -> dict[str, Any]:
    return {
        "id": run_id,
        "task": spec.task,
        "version": spec.version,
        "spec": spec.text,
        "hash": spec.digest.hex(),
    }


def _delivery(delivery: Delivery) -> dict[str, Any]:
    sent: dict[str, Any] = {"queue": delivery.queue, "max_attempts": delivery.retry.attempts}
    if delivery.priority:
        sent["priority"] = delivery.priority
    match delivery.run_after:
        case datetime():
            sent["due"] = delivery.run_after
        case timedelta():
            sent["delay_us"] = micros(delivery.run_after)
    if delivery.timeout is not None:
        sent["timeout_ms"] = max(delivery.timeout // timedelta(milliseconds=1), 1)
    if delivery.retry != ONCE:
        sent["retry"] = _encode(delivery.retry).decode()
    if delivery.labels:
        sent["labels"] = dict(delivery.labels)
    if delivery.traceparent is not None:
        sent["trace"] = delivery.traceparent
    if delivery.unique_key is not None:
        sent["key"] = delivery.unique_key
    return sent


TRIES_MAX: Final = 50


type QueryScript[Done] = Generator[Query[Any], list[Any], Done]
"""Yields queries, receives the rows of their answers, and returns the result."""


class EnqueuedRow(msgspec.Struct, frozen=True, gc=False):
    """A run that a statement has made, or one that held a key."""

    what: str
    """`made`, `landed` (made when the statement was sent before), or `held` (by another)."""
    id: str
    task: str
    key: str | None
    at: datetime
    """When the statement ran."""


class EnqueueResult(msgspec.Struct, frozen=True):
    """The result of enqueuing runs."""

    at: datetime | None = None
    """When they were accepted; None if an earlier copy was, whose answer was lost."""
    instead: Mapping[str, str] = {}
    """For each id under which no run was made, the run that holds its key."""
    landed: bool = False
    """Whether some had been accepted by an earlier copy whose answer was lost."""


def enqueue_unique(specs: Sequence[Numbered]) -> Query[EnqueuedRow]:
    """Accept specs under ids their sender chose, except those whose unique key is taken."""
    args = _resendable(described(specs))
    return Query("enqueue_unique", args, _enqueued_from, Resend.AGAIN)


def enqueue_memo(specs: Sequence[Numbered], codes: Codes) -> Query[EnqueuedRow]:
    """Accept specs like `enqueue_unique`; those of tasks in `codes` may be answered by a memo."""
    sent = described(specs)
    for row, (_, spec) in zip(sent, specs, strict=True):
        code = codes.get((spec.task, spec.version))
        row["code"] = None if code is None else memo_key(code, spec.text)
    return Query("enqueue_memo", _resendable(sent), _enqueued_from, Resend.AGAIN)


def _resendable(sent: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    asked = [(row["id"], row["task"], row.get("key")) for row in sent]
    return {**batch(sent), "again": False, "asked": asked}


def _enqueued_from(row: tuple[Any, ...]) -> EnqueuedRow:
    return EnqueuedRow(*row[:5])


def again(query: Query[Any]) -> Query[Any]:
    """Return the same statement, for when an earlier copy may have been accepted."""
    return msgspec.structs.replace(query, args={**query.args, "again": True})


def until_accepted(query: Query[Any]) -> QueryScript[EnqueueResult]:
    """Send an enqueue statement until every run was made or another run holds its key."""
    rows = yield query
    if query.resend is not Resend.AGAIN:
        return EnqueueResult(rows[0] if rows else None)
    landed = any(row.what == "landed" for row in rows)
    for _ in range(TRIES_MAX):
        instead = _instead(query.args["asked"], rows)
        if instead is not None and (yield from _holding(instead, rows)):
            return EnqueueResult(rows[0].at if rows else None, instead, landed)
        query = again(query)
        rows = yield query
    raise KeyContended(next(key for _, _, key in query.args["asked"] if key is not None))


def _holding(instead: Mapping[str, str], rows: Sequence[EnqueuedRow]) -> QueryScript[bool]:
    """Whether all holders at the statement's start still hold their key: it may have waited."""
    made = {row.id for row in rows if row.what != "held"}
    holders = sorted(set(instead.values()) - made)
    if not holders:
        return True
    args = {"ids": holders}
    found = yield Query("key_holders", args, lambda row: str(row[0]))
    return set(found) == set(holders)


def _instead(
    asked: Sequence[tuple[str, str, str | None]], rows: Sequence[EnqueuedRow]
) -> dict[str, str] | None:
    """Map ids that were not made to the holders of their keys; None if a holder is unknown."""
    made = {row.id for row in rows if row.what != "held"}
    # A holder at the statement's start may have ended before another run was made with the key.
    holders = {(row.task, row.key): row.id for row in rows if row.what == "held"}
    holders |= {(row.task, row.key): row.id for row in rows if row.what != "held"}
    instead = {}
    for run_id, task, key in asked:
        if run_id in made:
            continue
        holder = holders.get((task, key))
        if holder is None:
            return None
        instead[run_id] = holder
    return instead
