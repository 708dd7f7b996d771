# SPDX-License-Identifier: MIT
"""Folds what the log tells of a run into the state of its row. Pure: the same log, the same row.

Every kind of event has one rule, which says what its statement does to the row. A kind without a
rule may say in its data which status it leads to; of one that does not, nothing is known but that
the run moved. What is not known is None in `status`, and stays so until an event tells it.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from byrote.core.log.kinds import EventKind
from byrote.core.log.record import LogEntry, upcast

FINISHED: Final = frozenset({"SUCCESSFUL", "FAILED", "CANCELLED"})


class RunState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run as the log has it at some moment: the columns of its row that moves change."""

    status: str | None = None
    wait_reason: str | None = None
    moves: int = 0
    attempts: int = 0
    charged: int = 0
    losses: int = 0
    due: datetime | None = None
    """When it may be claimed, if the log tells."""
    leased_by: str | None = None
    lease_token: str | None = None
    leased_until: datetime | None = None
    enqueued_at: datetime | None = None
    started_at: datetime | None = None
    last_attempted_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    finished_at: datetime | None = None
    spec_hash: bytes | None = None
    """None if the log does not tell it: its beginning was dropped, or is older than such hashes."""
    result_hash: bytes | None = None


BLANK: Final = RunState()

type FieldChanges = dict[str, Any]
type Rule = Callable[[RunState, LogEntry], FieldChanges]


def fold(before: RunState, told: LogEntry) -> RunState:
    """The run after one more event."""
    told = upcast(told)
    if told.move > before.moves + 1:
        # Moves in between were not told: whatever they changed is not known any more.
        before = msgspec.structs.replace(before, status=None, leased_until=None)
    changes = RULES.get(told.kind, _other)(before, told)
    fields = {"attempts": told.attempt, **changes, "moves": told.move}
    return msgspec.structs.replace(before, **fields)


def fold_all(events: Iterable[LogEntry]) -> RunState:
    """The run after these events, which are in the order of their moves."""
    picture = BLANK
    for told in events:
        picture = fold(picture, told)
    return picture


def _said(told: LogEntry, name: str) -> Any:
    return None if told.data is None else told.data.get(name)


def _enqueued(_before: RunState, told: LogEntry) -> FieldChanges:
    started = {"enqueued_at": told.at, "due": told.at, "spec_hash": told.digest}
    data = told.data or {}
    if "status" in data:
        return {"enqueued_at": told.at, "status": data["status"]}
    if "run_after" not in data:
        return {**started, "status": "READY"}
    due = moment(data["run_after"])
    return {**started, "status": "WAITING", "wait_reason": "due", "due": due}


def _promoted(_before: RunState, _told: LogEntry) -> FieldChanges:
    return {"status": "READY", "wait_reason": None}


def _claimed(before: RunState, told: LogEntry) -> FieldChanges:
    return {
        "status": "RUNNING",
        "wait_reason": None,
        "leased_by": told.worker,
        "lease_token": told.token,
        "leased_until": told.leased_until,
        "started_at": before.started_at or told.at,
        "last_attempted_at": told.at,
    }


def _renewed(_before: RunState, told: LogEntry) -> FieldChanges:
    return {"status": "RUNNING", "leased_until": told.leased_until}


def _cancel_requested(_before: RunState, told: LogEntry) -> FieldChanges:
    return {"status": "RUNNING", "cancel_requested_at": told.at}


def _succeeded(before: RunState, told: LogEntry) -> FieldChanges:
    return {**_remembered(before, told), "charged": before.charged + 1}


def _remembered(_before: RunState, told: LogEntry) -> FieldChanges:
    return {**_ended(told, "SUCCESSFUL"), "result_hash": told.digest}


def _failed(before: RunState, told: LogEntry) -> FieldChanges:
    # A verdict has data; without any it was the sweep, which found the run lost once too often,
    # or, where no worker is named, no live worker knew the task of a ready run.
    if told.worker is None:
        return _ended(told, "FAILED")
    if told.data is None:
        return {**_ended(told, "FAILED"), **_taken(before)}
    return {**_ended(told, "FAILED"), "charged": before.charged + 1}


def _cancelled(before: RunState, told: LogEntry) -> FieldChanges:
    ended = _ended(told, "CANCELLED")
    if told.data is not None:
        return {**ended, **_counted(before, _said(told, "said"))}
    if told.worker is not None:
        return {**ended, **_taken(before)}
    return {**ended, "cancel_requested_at": told.at}


def _again(before: RunState, told: LogEntry) -> FieldChanges:
    status = _said(told, "status")
    changes = {"status": status, "wait_reason": _said(told, "wait"), "leased_until": None}
    changes |= _counted(before, _said(told, "said"))
    if status == "WAITING":
        changes["due"] = later(told.at, _said(told, "delay_us") or 0)
    return changes


def _released(_before: RunState, _told: LogEntry) -> FieldChanges:
    return {"status": "READY", "leased_until": None}


def _crashed(before: RunState, _told: LogEntry) -> FieldChanges:
    return {"status": "READY", "leased_until": None, "losses": before.losses + 1}


def _lost(before: RunState, _told: LogEntry) -> FieldChanges:
    return {"status": "READY", "leased_until": None, **_taken(before)}


def _taken(before: RunState) -> FieldChanges:
    """What a sweep does: nobody's word was heard, so the token is worth nothing any more."""
    return {"losses": before.losses + 1, "lease_token": None}


def _deleted(_before: RunState, _told: LogEntry) -> FieldChanges:
    return {"status": None}


def _revived(before: RunState, told: LogEntry) -> FieldChanges:
    changes: FieldChanges = {"status": "READY", "wait_reason": None, "due": told.at}
    if before.status != "FAILED":
        return changes
    fresh = ("leased_by", "lease_token", "cancel_requested_at", "finished_at")
    return {**changes, "charged": 0, "losses": 0, **dict.fromkeys(fresh)}


def _signalled(before: RunState, told: LogEntry) -> FieldChanges:
    status = _said(told, "status")
    if status == "READY" and before.status != "READY":
        return {"status": status, "wait_reason": None, "due": told.at}
    return {"status": status}


def _other(_before: RunState, told: LogEntry) -> FieldChanges:
    status = _said(told, "status")
    changes: FieldChanges = {"status": status, "wait_reason": _said(told, "wait")}
    if status != "RUNNING":
        changes["leased_until"] = None
    if status in FINISHED:
        changes["finished_at"] = told.at
    return changes


def _ended(told: LogEntry, status: str) -> FieldChanges:
    return {"status": status, "wait_reason": None, "leased_until": None, "finished_at": told.at}


def _counted(before: RunState, said: str | None) -> FieldChanges:
    match said:
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
"""What each kind of event does to a row."""


def moment(text: str | None) -> datetime | None:
    """A time as PostgreSQL writes it into JSON; None for one that Python cannot hold."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


def later(at: datetime, delay_us: int) -> datetime | None:
    """A moment so many microseconds on; None for one that Python cannot hold."""
    try:
        return at + timedelta(microseconds=delay_us)
    except OverflowError:
        return None
