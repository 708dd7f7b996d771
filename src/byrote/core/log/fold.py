# SPDX-License-Identifier: MIT
"""Folds the log of a run into the state of its row. Pure: the same log, the same row.

Every kind of event has one rule: the changes that its statement makes to the row. A kind without a
rule may have the resulting status in its data; otherwise only the move itself is known. An unknown
status is None until a later event has it.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from byrote.core.log.kinds import EventKind
from byrote.core.log.record import LogEntry, upcast
from byrote.core.state import FINAL


class RunState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The state of a run by the log at some moment: the columns that moves change."""

    status: str | None = None
    wait_reason: str | None = None
    moves: int = 0
    attempts: int = 0
    charged: int = 0
    losses: int = 0
    due: datetime | None = None
    """When it may be claimed, if the log has it."""
    leased_by: str | None = None
    lease_token: str | None = None
    leased_until: datetime | None = None
    enqueued_at: datetime | None = None
    started_at: datetime | None = None
    last_attempted_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    finished_at: datetime | None = None
    spec_hash: bytes | None = None
    """None if the log does not have it: its beginning was dropped, or precedes such hashes."""
    result_hash: bytes | None = None


BLANK: Final = RunState()

type FieldChanges = dict[str, Any]
type Rule = Callable[[RunState, LogEntry], FieldChanges]


def fold(before: RunState, entry: LogEntry) -> RunState:
    """Returns the state after one more event."""
    entry = upcast(entry)
    if entry.move > before.moves + 1:
        # Moves in between are missing from the log: what they changed is unknown.
        before = msgspec.structs.replace(before, status=None, leased_until=None)
    changes = RULES.get(entry.kind, _other)(before, entry)
    fields = {"attempts": entry.attempt, **changes, "moves": entry.move}
    return msgspec.structs.replace(before, **fields)


def fold_all(events: Iterable[LogEntry]) -> RunState:
    """Returns the state after these events, which are in the order of their moves."""
    state = BLANK
    for entry in events:
        state = fold(state, entry)
    return state


def _field(entry: LogEntry, name: str) -> Any:
    return None if entry.data is None else entry.data.get(name)


def _enqueued(_before: RunState, entry: LogEntry) -> FieldChanges:
    started = {"enqueued_at": entry.at, "due": entry.at, "spec_hash": entry.digest}
    data = entry.data or {}
    if "status" in data:
        return {"enqueued_at": entry.at, "status": data["status"]}
    if "run_after" not in data:
        return {**started, "status": "READY"}
    due = moment(data["run_after"])
    return {**started, "status": "WAITING", "wait_reason": "due", "due": due}


def _promoted(_before: RunState, _entry: LogEntry) -> FieldChanges:
    return {"status": "READY", "wait_reason": None}


def _claimed(before: RunState, entry: LogEntry) -> FieldChanges:
    return {
        "status": "RUNNING",
        "wait_reason": None,
        "leased_by": entry.worker,
        "lease_token": entry.token,
        "leased_until": entry.leased_until,
        "started_at": before.started_at or entry.at,
        "last_attempted_at": entry.at,
    }


def _renewed(_before: RunState, entry: LogEntry) -> FieldChanges:
    return {"status": "RUNNING", "leased_until": entry.leased_until}


def _cancel_requested(_before: RunState, entry: LogEntry) -> FieldChanges:
    return {"status": "RUNNING", "cancel_requested_at": entry.at}


def _succeeded(before: RunState, entry: LogEntry) -> FieldChanges:
    return {**_remembered(before, entry), "charged": before.charged + 1}


def _remembered(_before: RunState, entry: LogEntry) -> FieldChanges:
    return {**_ended(entry, "SUCCESSFUL"), "result_hash": entry.digest}


def _failed(before: RunState, entry: LogEntry) -> FieldChanges:
    # A verdict has data. Without data, the sweep ended a run that was lost too often; without a
    # worker, no live worker knew the task of a ready run.
    if entry.worker is None:
        return _ended(entry, "FAILED")
    if entry.data is None:
        return {**_ended(entry, "FAILED"), **_taken(before)}
    return {**_ended(entry, "FAILED"), "charged": before.charged + 1}


def _cancelled(before: RunState, entry: LogEntry) -> FieldChanges:
    ended = _ended(entry, "CANCELLED")
    if entry.data is not None:
        return {**ended, **_counted(before, _field(entry, "reported"))}
    if entry.worker is not None:
        return {**ended, **_taken(before)}
    return {**ended, "cancel_requested_at": entry.at}


def _again(before: RunState, entry: LogEntry) -> FieldChanges:
    status = _field(entry, "status")
    changes = {"status": status, "wait_reason": _field(entry, "wait"), "leased_until": None}
    changes |= _counted(before, _field(entry, "reported"))
    if status == "WAITING":
        changes["due"] = later(entry.at, _field(entry, "delay_us") or 0)
    return changes


def _released(_before: RunState, _entry: LogEntry) -> FieldChanges:
    return {"status": "READY", "leased_until": None}


def _crashed(before: RunState, _entry: LogEntry) -> FieldChanges:
    return {"status": "READY", "leased_until": None, "losses": before.losses + 1}


def _lost(before: RunState, _entry: LogEntry) -> FieldChanges:
    return {"status": "READY", "leased_until": None, **_taken(before)}


def _taken(before: RunState) -> FieldChanges:
    """The changes of a sweep: the loss is counted and the token is no longer valid."""
    return {"losses": before.losses + 1, "lease_token": None}


def _deleted(_before: RunState, _entry: LogEntry) -> FieldChanges:
    return {"status": None}


def _revived(before: RunState, entry: LogEntry) -> FieldChanges:
    changes: FieldChanges = {"status": "READY", "wait_reason": None, "due": entry.at}
    if before.status != "FAILED":
        return changes
    fresh = ("leased_by", "lease_token", "cancel_requested_at", "finished_at")
    return {**changes, "charged": 0, "losses": 0, **dict.fromkeys(fresh)}


def _signalled(before: RunState, entry: LogEntry) -> FieldChanges:
    status = _field(entry, "status")
    if status == "READY" and before.status != "READY":
        return {"status": status, "wait_reason": None, "due": entry.at}
    return {"status": status}


def _other(_before: RunState, entry: LogEntry) -> FieldChanges:
    status = _field(entry, "status")
    changes: FieldChanges = {"status": status, "wait_reason": _field(entry, "wait")}
    if status != "RUNNING":
        changes["leased_until"] = None
    if status in FINAL:
        changes["finished_at"] = entry.at
    return changes


def _ended(entry: LogEntry, status: str) -> FieldChanges:
    return {"status": status, "wait_reason": None, "leased_until": None, "finished_at": entry.at}


def _counted(before: RunState, letter: str | None) -> FieldChanges:
    match letter:
        case "S" | "R" | "F":
            return {"charged": before.charged + 1}
        case "X":
            return {"losses": before.losses + 1}
        case _:
            return {}


RULES: Final[Mapping[str, Rule]] = {
    EventKind.ENQUEUED: _enqueued,
    EventKind.PROMOTED: _promoted,
    EventKind.CLAIMED: _claimed,
    EventKind.RENEWED: _renewed,
    EventKind.CANCEL_REQUESTED: _cancel_requested,
    EventKind.SUCCEEDED: _succeeded,
    EventKind.REMEMBERED: _remembered,
    EventKind.FAILED: _failed,
    EventKind.CANCELLED: _cancelled,
    EventKind.RETRIED: _again,
    EventKind.SNOOZED: _again,
    EventKind.RELEASED: _released,
    EventKind.CRASHED: _crashed,
    EventKind.LOST: _lost,
    EventKind.REVIVED: _revived,
    EventKind.SIGNALLED: _signalled,
    EventKind.DELETED: _deleted,
}
"""The changes that each kind of event makes to a row."""


def moment(text: str | None) -> datetime | None:
    """Parse a time that PostgreSQL wrote into JSON; None if Python cannot represent it."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


def later(at: datetime, delay_us: int) -> datetime | None:
    """Returns the moment `delay_us` later; None if Python cannot represent it."""
    try:
        return at + timedelta(microseconds=delay_us)
    except OverflowError:
        return None
