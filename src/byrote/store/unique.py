# SPDX-License-Identifier: MIT
"""Enqueueing with unique keys: what was made, who holds a key, and when to ask again.

Insert and look-up are one statement on one snapshot. A run that took the key after the snapshot
stops the insert and is not in the answer; then the same statement is sent again. It knows what it
has made before by its id, so the same is done when an answer was lost. A statement that had to wait
may name a holder that has ended meanwhile, so holders are looked at once more.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from byrote.core.errors import KeyContended
from byrote.core.memo import memo_key
from byrote.core.spec import Spec
from byrote.store import queries
from byrote.store.query import Query, Resend

TRIES_MAX: Final = 50

type Script[Done] = Generator[Query[Any], list[Any], Done]
"""Yields queries, is sent the rows of their answers, and gives what came of it."""


class Given(msgspec.Struct, frozen=True, gc=False):
    """A run that a statement has made, or one that has held a key."""

    what: str
    """`made`, `landed` (made when the statement was sent before), or `held` (by another)."""
    id: str
    task: str
    key: str | None
    at: datetime
    """When the statement ran."""


class Settled(msgspec.Struct, frozen=True):
    """What became of runs that were to be enqueued."""

    at: datetime | None = None
    """When they were accepted, where the statement says so."""
    instead: Mapping[str, str] = {}
    """For each id under which no run was made, the run that holds its key."""
    landed: bool = False
    """Some of it had been accepted when it was sent before, and that answer was lost."""


NOTHING_SPECIAL: Final = Settled()
"""Every run was made under the id it was sent with."""


def enqueue_unique(specs: Sequence[tuple[str, Spec]]) -> Query[Given]:
    """Accept specs under ids their sender chose, but none whose unique key is taken."""
    args = _resendable(queries.described(specs))
    return Query("enqueue_unique", args, _given_from, Resend.AGAIN)


def enqueue_memo(
    specs: Sequence[tuple[str, Spec]], codes: Mapping[tuple[str, int], str]
) -> Query[Given]:
    """Accept specs like `enqueue_unique`; those of tasks with a code may be answered by memory."""
    sent = queries.described(specs)
    for row, (_, spec) in zip(sent, specs, strict=True):
        code = codes.get((spec.task, spec.version))
        row["code"] = None if code is None else memo_key(code, spec.text)
    return Query("enqueue_memo", _resendable(sent), _given_from, Resend.AGAIN)


def _resendable(sent: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    asked = [(row["id"], row["task"], row.get("key")) for row in sent]
    return {**queries.batch(sent), "again": False, "asked": asked}


def _given_from(row: tuple[Any, ...]) -> Given:
    return Given(*row[:5])


def is_keyed(spec: Spec) -> bool:
    """Whether the run is to be the only unfinished one with its key."""
    return spec.delivery.unique_key is not None


def again(query: Query[Any]) -> Query[Any]:
    """The same statement, for when some of it may have been accepted already."""
    return msgspec.structs.replace(query, args={**query.args, "again": True})


def settle(query: Query[Any]) -> Script[Settled]:
    """Enqueue, until every run was made or has another that holds its key."""
    rows = yield query
    if query.resend is not Resend.AGAIN:
        return NOTHING_SPECIAL
    landed = any(row.what == "landed" for row in rows)
    for _ in range(TRIES_MAX):
        instead = _instead(query.args["asked"], rows)
        if instead is not None and (yield from _holding(instead, rows)):
            return Settled(rows[0].at if rows else None, instead, landed)
        query = again(query)
        rows = yield query
    raise KeyContended(next(key for _, _, key in query.args["asked"] if key is not None))


def _holding(instead: Mapping[str, str], rows: Sequence[Given]) -> Script[bool]:
    """Whether all that held a key when the statement began still do: it may have waited since."""
    made = {row.id for row in rows if row.what != "held"}
    holders = sorted(set(instead.values()) - made)
    if not holders:
        return True
    args = {"ids": holders}
    found = yield Query("key_holders", args, lambda row: str(row[0]))
    return set(found) == set(holders)


def _instead(
    asked: Sequence[tuple[str, str, str | None]], rows: Sequence[Given]
) -> dict[str, str] | None:
    """Who holds the keys of those that were not made; None while that is not known of all."""
    made = {row.id for row in rows if row.what != "held"}
    # Whoever held a key when the statement began may have ended before one was made with it.
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


def perform[Done](script: Script[Done], ask: Callable[[Query[Any]], list[Any]]) -> Done:
    """Run a script with whatever asks its queries."""
    try:
        query = next(script)
        while True:
            query = script.send(ask(query))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
