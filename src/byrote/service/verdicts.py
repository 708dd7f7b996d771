# SPDX-License-Identifier: MIT
"""Reports of workers as rows for finish.sql, with a verdict where the worker sent none."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec
from msgspec import UNSET

from byrote.core.duration import duration, micros
from byrote.core.errors import BadPayload, PayloadTooLarge
from byrote.core.json.codec import PAYLOAD_MAX, digest_of
from byrote.core.outcome import (
    OUTPUT_MAX,
    TRACEBACK_MAX,
    Crashed,
    Failed,
    Fault,
    safe_text,
)
from byrote.core.policy import Fail, GiveBackCrashed, RetryIn, judge
from byrote.core.run import Leased
from byrote.core.verdict import LETTER_OF_WORD
from byrote.service.http.decoding import prefixed
from byrote.wire.leases import Error, Finish, Output
from byrote.wire.problems import Invalid

type Row = dict[str, Any]

ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "result": frozenset({"succeed"}),
    "error": frozenset({"retry", "fail", "crashed"}),
    "snooze": frozenset({"snooze"}),
    "cancelled": frozenset({"cancel"}),
    "released": frozenset({"release"}),
}
"""Verdicts that may follow from an outcome."""


def row_of(item: Finish, run: Leased | None, path: str) -> Row:
    """One attempt's end; `run` is known if the service judges it and its lease holds."""
    what = _what(item, path)
    row: Row = {"id": item.run, "token": item.token}
    if what == "error":
        assert item.error is not None  # noqa: S101 -- `_what` has just seen it.
        row |= _error(item.error, run, path)
    elif what == "snooze":
        assert item.snooze is not None  # noqa: S101 -- the same.
        row |= {"verdict": "Z", "delay_us": micros(_length(item.snooze.after, path))}
        if item.snooze.wait is not None:
            row |= {"wait": item.snooze.wait, "event": _clean(item.snooze.event)}
    elif what == "result":
        row |= _result(item, path)
    else:
        row["verdict"] = "C" if what == "cancelled" else "L"
    if item.verdict is not None and item.verdict.kind != "judge":
        if item.verdict.kind not in ALLOWED[what]:
            raise Invalid(f"{path}.verdict: {item.verdict.kind} does not follow from {what}.")
        row["verdict"] = LETTER_OF_WORD[item.verdict.kind]
        if item.verdict.kind in {"retry", "snooze"}:
            row["delay_us"] = item.verdict.delay_us
    return row | _extras(item)


def _what(item: Finish, path: str) -> str:
    found = [
        name
        for name, there in (
            ("result", item.result is not UNSET),
            ("error", item.error is not None),
            ("snooze", item.snooze is not None),
            ("cancelled", item.cancelled),
            ("released", item.released),
        )
        if there
    ]
    if len(found) != 1:
        raise Invalid(
            f"{path}: send one of {', '.join(ALLOWED)}; found: {', '.join(found) or 'none'}."
        )
    return found[0]


def _result(item: Finish, path: str) -> Row:
    text = bytes(item.result)  # type: ignore[arg-type]  # Not UNSET: `_what` has just seen it.
    if len(text) > PAYLOAD_MAX:
        raise PayloadTooLarge(len(text), PAYLOAD_MAX)
    try:
        digest = digest_of(text).hex()
    except BadPayload as error:
        raise prefixed(error, f"{path}.result") from None
    return {"verdict": "S", "result": text.decode(), "hash": digest}


def _error(error: Error, run: Leased | None, path: str) -> Row:
    fault = _fault(error, run)
    row: Row = {"error": msgspec.to_builtins(fault), "verdict": "F"}
    if run is None:
        return row  # Either the worker judged, or the lease is lost and the row is dropped.
    after = None if error.retry_after is None else _length(error.retry_after, path)
    outcome = Crashed(fault) if error.disrupted else Failed(fault, after, error.fatal)
    match judge(run, outcome):
        case RetryIn(delay=delay):
            row |= {"verdict": "R", "delay_us": micros(delay)}
        case GiveBackCrashed():
            row["verdict"] = "X"
        case Fail():
            row["verdict"] = "F"
    return row


def _fault(error: Error, run: Leased | None) -> Fault:
    return Fault(
        kind=safe_text(error.kind),
        type=safe_text(error.type),
        message=safe_text(error.message),
        traceback=_clean(error.traceback, TRACEBACK_MAX),
        signal=_clean(error.signal),
        exit_code=error.exit_code,
        attempt=error.attempt if run is None else run.attempt,
        worker=safe_text(error.worker),
        stderr=_clean(error.stderr, TRACEBACK_MAX),
    )


def _clean(text: str | None, limit: int = 4_000) -> str | None:
    return None if text is None else safe_text(text, limit)


def _length(value: str | float, path: str) -> timedelta:
    try:
        return duration(value)
    except ValueError as error:
        raise Invalid(f"{path}: {error}") from None


def _extras(item: Finish) -> Row:
    extras: Row = {}
    if item.output is not None:
        extras["output"] = _output(item.output)
    more: Row = {}
    if item.usage is not None:
        more["usage"] = {safe_text(name, 100): value for name, value in item.usage.items()}
    if item.provenance is not None:
        more["provenance"] = item.provenance
    return extras | ({"more": more} if more else {})


def _output(output: Output) -> Row:
    fields: Row = msgspec.structs.asdict(output)
    return {
        name: safe_text(value, OUTPUT_MAX) if isinstance(value, str) else value
        for name, value in fields.items()
    }


def with_common(rows: Sequence[Row]) -> tuple[list[Row], int | None]:
    """Move the provenance out of the rows if all have the same one; returns rows and it."""
    found = {row.get("more", {}).get("provenance") for row in rows}
    if len(found) != 1:
        return list(rows), None
    for row in rows:
        row.get("more", {}).pop("provenance", None)
    return list(rows), found.pop()
