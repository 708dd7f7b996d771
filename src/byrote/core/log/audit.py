# SPDX-License-Identifier: MIT
"""Audits one run: its log against the rules, and against its row. Pure, and in bounded memory.

A LogAudit receives a run's events one by one, in the order of their moves, then its row. It trusts
neither: every event must be possible by the rules, and the log must end in the state of the row.

Two kinds of gaps are not findings: events older than the horizon, which retention dropped, and
renewals and promotions of a queue that logs fewer kinds. After a gap the lease is not checked until
the next event on it.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from byrote.core.errors import BadPayload
from byrote.core.json.codec import digest_of, unpack
from byrote.core.log.contents import Records
from byrote.core.log.findings import DatabaseFacts, Finding, RunRow
from byrote.core.log.fold import BLANK, RunState, fold
from byrote.core.log.kinds import EventKind
from byrote.core.log.record import LogEntry, upcast
from byrote.core.policy import LOSSES_MAX
from byrote.core.state import FINAL

FINDINGS_MAX: Final = 20
"""Findings per run; more would not help to repair it."""
STUCK_AFTER: Final = timedelta(minutes=1)
"""How late a duty may be before a run counts as stuck."""

_BY_HOLDER: Final = frozenset(
    {
        EventKind.RENEWED,
        EventKind.SUCCEEDED,
        EventKind.RETRIED,
        EventKind.SNOOZED,
        EventKind.RELEASED,
        EventKind.CRASHED,
    }
)
_TABLES: Final = {"FAILED": {"dead"}, "SUCCESSFUL": {"queue", "archive"}}
_COMPARED: Final = (
    "charged", "losses", "leased_by", "lease_token", "enqueued_at", "started_at",
    "last_attempted_at", "cancel_requested_at", "finished_at",
)  # fmt: skip
_ENDED: Final = frozenset({EventKind.FAILED, EventKind.CANCELLED})
_NEEDS_DUE: Final = frozenset({EventKind.CLAIMED, EventKind.PROMOTED})
_FROM: Final[Mapping[str, AbstractSet[str]]] = {
    EventKind.PROMOTED: {"WAITING"},
    EventKind.CLAIMED: {"READY"},
    EventKind.CANCEL_REQUESTED: {"RUNNING"},
    EventKind.LOST: {"RUNNING"},
    EventKind.REMEMBERED: {"READY"},
    EventKind.REVIVED: {"WAITING", "FAILED"},
    EventKind.DELETED: FINAL,
    EventKind.SIGNALLED: {"WAITING", "READY", "RUNNING"},
}


class LogAudit:
    """Receives the events and the row of one run, and returns the findings."""

    def __init__(self, run_id: str, scene: DatabaseFacts, records: Records | None = None) -> None:
        self._id = run_id
        self._scene = scene
        self._found: list[Finding] = []
        self._state = BLANK
        self._whole = True
        """Whether the log has the run from its first move on."""
        self._fleeting = False
        self._last: LogEntry | None = None
        self._latest: datetime | None = None
        """The latest time of any event so far; the clock may have been set back since."""
        self._records = records or Records()
        self._spans: dict[int, tuple[datetime, datetime | None]] = {}
        self._wanted = {write.attempt for write in self._records.written}
        self.covered = True
        """Whether the log has the hashes of the row's spec and result."""

    def add(self, entry: LogEntry, *, queue: str | None) -> None:
        """Check one more event; events come in the order of moves."""
        entry = upcast(entry)
        before = self._state
        if self._last is None:
            self._begin(entry)
        elif entry.move <= before.moves:
            self._find("moves", f"move {entry.move} is logged twice", entry)
        elif entry.move > before.moves + 1:
            if not self._quiet(queue, entry.at):
                self._find("moves", f"moves {before.moves + 1} to {entry.move - 1} missing", entry)
            before = msgspec.structs.replace(before, status=None, leased_until=None)
        if self._last is not None:
            self._judge(before, entry)
        self._state = fold(self._state, entry)
        if (wrong := self._records.add(entry)) is not None:
            self._find("moves", wrong, entry)
        self._last = entry
        self._latest = max(self._latest or entry.at, entry.at)
        if entry.attempt in self._wanted:
            self._note_span(entry)

    def close(self, *rows: RunRow) -> list[Finding]:
        """Returns the findings, after every event; `rows` are all rows that have this id."""
        if len(rows) > 1:
            tables = " and ".join(row.table for row in rows)
            self._find("ends", f"is stored in {tables} at once")
        if rows:
            self._see(rows[0])
        else:
            self._miss()
        self._check_written()
        return self._found

    def _find(self, check: str, message: str, entry: LogEntry | None = None) -> None:
        if len(self._found) < FINDINGS_MAX:
            self._found.append(Finding(check, message, self._id, entry.move if entry else None))

    def _quiet(self, queue: str | None, at: datetime) -> bool:
        if queue is None:
            return bool(self._scene.quiet)
        since = self._scene.quiet.get(queue)
        return since is not None and at >= since

    def _begin(self, entry: LogEntry) -> None:
        if entry.kind == EventKind.ENQUEUED and entry.move == 1:
            # Runs that only check others are deleted after a day, ended or not.
            self._fleeting = bool((entry.data or {}).get("shadow"))
            return
        self._whole = False
        # The beginning may have been dropped with its day, but then the run is older than the log.
        self._state = RunState(moves=entry.move - 1, attempts=entry.attempt - _claims(entry))

    def _judge(self, before: RunState, entry: LogEntry) -> None:
        holder = is_by_holder(entry)
        self._judge_status(before, entry, holder=holder)
        expected = before.attempts + _claims(entry)
        if entry.attempt != expected:
            check = "fence" if holder else "attempts"
            found = f"{entry.kind} is on attempt {entry.attempt} while {expected} was due"
            self._find(check, found, entry)
        until = before.leased_until
        if until is None:
            self._judge_due(before, entry)
        elif holder and entry.at >= until:
            found = f"{entry.kind} was accepted at {entry.at}, after its lease ran out at {until}"
            self._find("fence", found, entry)
        elif is_by_sweep(entry) and entry.at < until:
            found = (
                f"{entry.kind} took the lease of {before.leased_by} at {entry.at}, held to {until}"
            )
            self._find("leases", found, entry)

    def _judge_status(self, before: RunState, entry: LogEntry, *, holder: bool) -> None:
        allowed: AbstractSet[str] | None
        allowed = {"RUNNING"} if holder or is_by_sweep(entry) else _FROM.get(entry.kind)
        if entry.kind == EventKind.CANCELLED and allowed is None:
            allowed = {"WAITING", "READY"}
        if is_unserved(entry):
            allowed = {"READY"}
        if before.status is None or allowed is None or before.status in allowed:
            return
        found = f"{entry.kind} of a run that was {before.status}"
        if entry.kind == EventKind.CLAIMED and before.status == "RUNNING":
            found = f"claimed by {entry.worker} at {entry.at} while {before.leased_by} held it"
            self._find("leases", f"{found} until {before.leased_until}", entry)
        elif before.status in FINAL:
            self._find("ends", found, entry)
        else:
            self._find("fence" if holder else "moves", found, entry)

    def _judge_due(self, before: RunState, entry: LogEntry) -> None:
        due, now = before.due, max(self._latest or entry.at, entry.at)
        if entry.kind in _NEEDS_DUE and due is not None and now < due:
            self._find("early", f"{entry.kind} at {entry.at}, due at {due}", entry)

    def _note_span(self, entry: LogEntry) -> None:
        begun, until = self._spans.get(entry.attempt, (entry.at, None))
        if entry.at < begun:
            # The clock was set back during the attempt, by an unknown amount.
            begun = datetime.min.replace(tzinfo=UTC)
        if entry.leased_until is not None:
            until = entry.leased_until if until is None else max(until, entry.leased_until)
        self._spans[entry.attempt] = (begun, until)

    def _check_written(self) -> None:
        for write in self._records.written:
            if write.attempt is None:
                continue
            begun, until = self._spans.get(write.attempt, (None, None))
            if begun is None:
                outlived = write.at < self._scene.horizon or not self._whole
                if self._last is not None and not outlived:
                    found = f"{write.what} of attempt {write.attempt}, which was never claimed"
                    self._find("fence", found)
            elif write.at < begun or (until is not None and write.at >= until):
                found = f"{write.what} was written at {write.at}, outside its lease ({begun} to"
                self._find("fence", f"{found} {until})")
            if not matches(write.result_json, write.result_hash):
                self._find("results", f"{write.what} does not match its hash")

    def _miss(self) -> None:
        last = self._last
        if last is None or last.kind == EventKind.DELETED or self._fleeting:
            return
        limit = self._scene.kept_until.get(last.kind)
        if limit is None:
            self._find("kept", f"there is no row, and the log ends with {last.kind}", last)
        elif last.at >= limit:
            found = f"the row is gone, though {last.kind} at {last.at} is to be kept since {limit}"
            self._find("kept", found, last)

    def _see(self, row: RunRow) -> None:
        if row.table not in _TABLES.get(row.status, {"queue", "archive"}) or (
            row.table == "archive" and row.status not in FINAL
        ):
            self._find("ends", f"is {row.status} but is stored in {row.table}")
        if row.charged > row.max_attempts or row.losses > LOSSES_MAX:
            found = f"{row.charged} attempts charged of {row.max_attempts}, lost {row.losses} times"
            self._find("attempts", found)
        self._check_texts(row)
        self._check_hashes(row, self._state)
        self._check_environments(row)
        for found in self._records.differences(row.errors, whole=self._whole and bool(self._last)):
            self._find("records", found)
        self._check_stuck(row)
        if self._last is None:
            if row.enqueued_at >= self._scene.horizon:
                self._find("rows", "the log has no event of this run")
        else:
            self._compare(row, self._state)

    def _check_texts(self, row: RunRow) -> None:
        if not matches(row.spec_json, row.spec_hash):
            self._find("specs", "the spec does not match its hash")
        elif (named := named_in(row.spec_json)) != (row.task, row.version):
            found = f"the spec is of {_task(*named)}, the row of {_task(row.task, row.version)}"
            self._find("specs", found)
        if not matches(row.result_json, row.result_hash):
            self._find("results", "the result does not match its hash")
        elif (row.result_json is not None) != (row.status == "SUCCESSFUL"):
            has = "no result" if row.result_json is None else "a result"
            self._find("results", f"it is {row.status} and has {has}")

    def _check_hashes(self, row: RunRow, logged: RunState) -> None:
        """Compare with the log's hashes: a text and the hash in its row may both be edited."""
        if logged.spec_hash not in (None, row.spec_hash):
            self._find("specs", "the spec is not the one in the log")
        if row.result_hash is not None and logged.result_hash not in (None, row.result_hash):
            self._find("results", "the result is not the one in the log")
        succeeded = row.status == "SUCCESSFUL"
        self.covered = None not in (logged.spec_hash, logged.result_hash if succeeded else b"")

    def _check_environments(self, row: RunRow) -> None:
        for attempt, number in enumerate(row.provenance or (), start=1):
            if number is not None and number not in self._scene.environments:
                found = f"attempt {attempt} was executed in environment {number}, which is missing"
                self._find("records", found)

    def _check_stuck(self, row: RunRow) -> None:
        late = self._scene.now - STUCK_AFTER
        if not self._scene.alive:
            return
        if row.status == "RUNNING" and row.leased_until is not None and row.leased_until < late:
            self._find("stuck", f"its lease ran out at {row.leased_until} and was not taken back")
        ended_by = self._scene.overdue.get((row.queue, row.task, row.version))
        if row.status == "READY" and ended_by is not None and row.run_after < ended_by:
            found = f"no live worker knows {row.task}@{row.version}, and it was not ended"
            self._find("stuck", found)
        if row.status == "WAITING" and row.run_after < late:
            self._find("stuck", f"it waits ({row.wait_reason}) though due since {row.run_after}")

    def _compare(self, row: RunRow, logged: RunState) -> None:
        if not self._whole and row.enqueued_at >= self._scene.horizon:
            self._find("rows", f"the log begins with move {logged.moves}", self._last)
        if logged.moves != row.moves:
            if not (logged.moves < row.moves and self._quiet(row.queue, self._scene.now)):
                self._find("rows", f"the log has {logged.moves} moves, the row {row.moves}")
            return
        names = ["attempts", *(_COMPARED if self._whole else ())]
        if logged.status is not None:
            names += ["status", "leased_until"]
        if logged.status == row.status == "WAITING" and self._whole:
            self._differ("run_after", logged.due, row.run_after)
        for name in names:
            self._differ(name, getattr(logged, name), getattr(row, name))

    def _differ(self, name: str, logged: Any, stored: Any) -> None:
        if logged != stored:
            self._find("rows", f"{name} is {logged} by the log and {stored} in the row")


def is_by_holder(entry: LogEntry) -> bool:
    """Whether only the holder of the lease may have caused this event."""
    return entry.kind in _BY_HOLDER or (
        entry.kind in _ENDED and entry.data is not None and not is_unserved(entry)
    )


def is_unserved(entry: LogEntry) -> bool:
    """Whether this event ended a ready run because no live worker knew its task."""
    return entry.kind == EventKind.FAILED and entry.worker is None


def is_by_sweep(entry: LogEntry) -> bool:
    """Whether this event took back a lease that had run out."""
    if entry.kind == EventKind.LOST:
        return True
    ended = entry.kind in _ENDED and entry.worker is not None
    return ended and entry.data is None


def _task(task: object, version: object) -> str:
    return f"{task}@{version}"


def _claims(entry: LogEntry) -> int:
    return int(entry.kind == EventKind.CLAIMED)


def matches(text: str | None, digest: bytes | None) -> bool:
    """Whether a stored text matches its stored hash; two absent ones match."""
    if text is None or digest is None:
        return text is None and digest is None
    try:
        return digest_of(text) == digest
    except BadPayload:
        return False


def named_in(text: str) -> tuple[object, object]:
    """Returns the task and the version in a stored spec, or None for each."""
    match unpack(text):
        case {"task": task, "version": version}:
            return task, version
        case _:
            return None, None
