# SPDX-License-Identifier: MIT
"""Judges one run by what the log tells of it and what its row says. Pure, and in bounded memory.

An Examiner hears a run's events one by one, in the order of their moves, then sees its row. It
trusts neither: what the log says must be possible by the rules, and where it ends must be the row.

What may be missing without being wrong: events older than the horizon, which retention dropped,
and renewals and promotions of a queue that tells fewer kinds. After such a gap nothing is claimed
about the lease until the log speaks of it again.
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
from byrote.core.log.fold import BLANK, FINISHED, RunState, fold
from byrote.core.log.kinds import EventKind
from byrote.core.log.record import LogEntry, upcast
from byrote.core.policy import LOSSES_MAX

FINDINGS_MAX: Final = 20
"""Findings per run; a run that is that broken needs no more of them."""
STUCK_AFTER: Final = timedelta(minutes=1)
"""How long a duty may be late before a run counts as stuck."""

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
_HOMES: Final = {"FAILED": {"dead"}, "SUCCESSFUL": {"queue", "archive"}}
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
    EventKind.DELETED: FINISHED,
    EventKind.SIGNALLED: {"WAITING", "READY", "RUNNING"},
}


class LogAudit:
    """Hears the events of one run, sees its row, and says what is wrong with them."""

    def __init__(self, run_id: str, scene: DatabaseFacts, records: Records | None = None) -> None:
        self._id = run_id
        self._scene = scene
        self._found: list[Finding] = []
        self._picture = BLANK
        self._whole = True
        """The log has the run from its first move on."""
        self._fleeting = False
        self._last: LogEntry | None = None
        self._latest: datetime | None = None
        """The latest that the clock had shown by then; it may have been set back since."""
        self._records = records or Records()
        self._spans: dict[int, tuple[datetime, datetime | None]] = {}
        self._wanted = {write.attempt for write in self._records.written}
        self.covered = True
        """Whether the log has the hashes of what its row holds."""

    def hear(self, told: LogEntry, *, queue: str | None) -> None:
        """One more event, in the order of moves."""
        told = upcast(told)
        before = self._picture
        if self._last is None:
            self._begin(told)
        elif told.move <= before.moves:
            self._find("moves", f"move {told.move} is told twice", told)
        elif told.move > before.moves + 1:
            if not self._quiet(queue, told.at):
                self._find("moves", f"moves {before.moves + 1} to {told.move - 1} untold", told)
            before = msgspec.structs.replace(before, status=None, leased_until=None)
        if self._last is not None:
            self._judge(before, told)
        self._picture = fold(self._picture, told)
        if (wrong := self._records.hear(told)) is not None:
            self._find("moves", wrong, told)
        self._last = told
        self._latest = max(self._latest or told.at, told.at)
        if told.attempt in self._wanted:
            self._note_span(told)

    def close(self, *rows: RunRow) -> list[Finding]:
        """The verdict, once every event was heard; `rows` are all rows that have this id."""
        if len(rows) > 1:
            homes = " and ".join(row.home for row in rows)
            self._find("ends", f"lies in {homes} at once")
        if rows:
            self._see(rows[0])
        else:
            self._miss()
        self._check_written()
        return self._found

    def _find(self, check: str, said: str, told: LogEntry | None = None) -> None:
        if len(self._found) < FINDINGS_MAX:
            self._found.append(Finding(check, said, self._id, told.move if told else None))

    def _quiet(self, queue: str | None, at: datetime) -> bool:
        if queue is None:
            return bool(self._scene.quiet)
        since = self._scene.quiet.get(queue)
        return since is not None and at >= since

    def _begin(self, told: LogEntry) -> None:
        if told.kind == EventKind.ENQUEUED and told.move == 1:
            # Runs that only check others are forgotten after a day, ended or not.
            self._fleeting = bool((told.data or {}).get("shadow"))
            return
        self._whole = False
        # The beginning may have been dropped with its day, but then the run is older than the log.
        self._picture = RunState(moves=told.move - 1, attempts=told.attempt - _claims(told))

    def _judge(self, before: RunState, told: LogEntry) -> None:
        holder = is_by_holder(told)
        self._judge_status(before, told, holder=holder)
        expected = before.attempts + _claims(told)
        if told.attempt != expected:
            check = "fence" if holder else "attempts"
            said = f"{told.kind} speaks of attempt {told.attempt} while {expected} was due"
            self._find(check, said, told)
        until = before.leased_until
        if until is None:
            self._judge_due(before, told)
        elif holder and told.at >= until:
            said = f"{told.kind} was accepted at {told.at}, after its lease ran out at {until}"
            self._find("fence", said, told)
        elif is_by_sweep(told) and told.at < until:
            said = f"{told.kind} took the lease of {before.leased_by} at {told.at}, held to {until}"
            self._find("leases", said, told)

    def _judge_status(self, before: RunState, told: LogEntry, *, holder: bool) -> None:
        allowed: AbstractSet[str] | None
        allowed = {"RUNNING"} if holder or is_by_sweep(told) else _FROM.get(told.kind)
        if told.kind == EventKind.CANCELLED and allowed is None:
            allowed = {"WAITING", "READY"}
        if is_unserved(told):
            allowed = {"READY"}
        if before.status is None or allowed is None or before.status in allowed:
            return
        said = f"{told.kind} of a run that was {before.status}"
        if told.kind == EventKind.CLAIMED and before.status == "RUNNING":
            said = f"claimed by {told.worker} at {told.at} while {before.leased_by} held it"
            self._find("leases", f"{said} until {before.leased_until}", told)
        elif before.status in FINISHED:
            self._find("ends", said, told)
        else:
            self._find("fence" if holder else "moves", said, told)

    def _judge_due(self, before: RunState, told: LogEntry) -> None:
        due, now = before.due, max(self._latest or told.at, told.at)
        if told.kind in _NEEDS_DUE and due is not None and now < due:
            self._find("early", f"{told.kind} at {told.at}, due at {due}", told)

    def _note_span(self, told: LogEntry) -> None:
        begun, until = self._spans.get(told.attempt, (told.at, None))
        if told.at < begun:
            # The clock was set back during the attempt: by how much, only its last event knows.
            begun = datetime.min.replace(tzinfo=UTC)
        if told.leased_until is not None:
            until = told.leased_until if until is None else max(until, told.leased_until)
        self._spans[told.attempt] = (begun, until)

    def _check_written(self) -> None:
        for write in self._records.written:
            if write.attempt is None:
                continue
            begun, until = self._spans.get(write.attempt, (None, None))
            if begun is None:
                outlived = write.at < self._scene.horizon or not self._whole
                if self._last is not None and not outlived:
                    said = f"{write.what} of attempt {write.attempt}, which nobody claimed"
                    self._find("fence", said)
            elif write.at < begun or (until is not None and write.at >= until):
                said = f"{write.what} was written at {write.at}, outside its lease ({begun} to"
                self._find("fence", f"{said} {until})")
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
            said = f"the row is gone, though {last.kind} at {last.at} is to be kept since {limit}"
            self._find("kept", said, last)

    def _see(self, row: RunRow) -> None:
        if row.home not in _HOMES.get(row.status, {"queue", "archive"}) or (
            row.home == "archive" and row.status not in FINISHED
        ):
            self._find("ends", f"is {row.status} but lies in {row.home}")
        if row.charged > row.max_attempts or row.losses > LOSSES_MAX:
            said = f"{row.charged} attempts charged of {row.max_attempts}, lost {row.losses} times"
            self._find("attempts", said)
        self._check_texts(row)
        self._check_hashes(row, self._picture)
        self._check_environments(row)
        for said in self._records.differences(row.errors, whole=self._whole and bool(self._last)):
            self._find("records", said)
        self._check_stuck(row)
        if self._last is None:
            if row.enqueued_at >= self._scene.horizon:
                self._find("rows", "the log tells nothing of this run")
        else:
            self._compare(row, self._picture)

    def _check_texts(self, row: RunRow) -> None:
        if not matches(row.spec_json, row.spec_hash):
            self._find("specs", "the spec does not match its hash")
        elif (named := named_in(row.spec_json)) != (row.task, row.version):
            said = f"the spec is of {_task(*named)}, the row of {_task(row.task, row.version)}"
            self._find("specs", said)
        if not matches(row.result_json, row.result_hash):
            self._find("results", "the result does not match its hash")
        elif (row.result_json is not None) != (row.status == "SUCCESSFUL"):
            has = "no result" if row.result_json is None else "a result"
            self._find("results", f"it is {row.status} and has {has}")

    def _check_hashes(self, row: RunRow, told: RunState) -> None:
        """A text and the hash beside it may both be edited; the hash in the log is a third."""
        if told.spec_hash not in (None, row.spec_hash):
            self._find("specs", "the spec is not the one that the log tells of")
        if row.result_hash is not None and told.result_hash not in (None, row.result_hash):
            self._find("results", "the result is not the one that the log tells of")
        succeeded = row.status == "SUCCESSFUL"
        self.covered = None not in (told.spec_hash, told.result_hash if succeeded else b"")

    def _check_environments(self, row: RunRow) -> None:
        for attempt, number in enumerate(row.provenance or (), start=1):
            if number is not None and number not in self._scene.environments:
                said = f"attempt {attempt} was executed in environment {number}, which is not there"
                self._find("records", said)

    def _check_stuck(self, row: RunRow) -> None:
        late = self._scene.now - STUCK_AFTER
        if not self._scene.alive:
            return
        if row.status == "RUNNING" and row.leased_until is not None and row.leased_until < late:
            self._find("stuck", f"its lease ran out at {row.leased_until} and nobody took it back")
        ended_by = self._scene.overdue.get((row.queue, row.task, row.version))
        if row.status == "READY" and ended_by is not None and row.run_after < ended_by:
            said = f"no live worker knows {row.task}@{row.version}, and it was not ended"
            self._find("stuck", said)
        if row.status == "WAITING" and row.run_after < late:
            self._find("stuck", f"it waits ({row.wait_reason}) though due since {row.run_after}")

    def _compare(self, row: RunRow, told: RunState) -> None:
        if not self._whole and row.enqueued_at >= self._scene.horizon:
            self._find("rows", f"the log begins with move {told.moves}", self._last)
        if told.moves != row.moves:
            if not (told.moves < row.moves and self._quiet(row.queue, self._scene.now)):
                self._find("rows", f"the log has {told.moves} moves, the row {row.moves}")
            return
        names = ["attempts", *(_COMPARED if self._whole else ())]
        if told.status is not None:
            names += ["status", "leased_until"]
        if told.status == row.status == "WAITING" and self._whole:
            self._differ("run_after", told.due, row.run_after)
        for name in names:
            self._differ(name, getattr(told, name), getattr(row, name))

    def _differ(self, name: str, told: Any, kept: Any) -> None:
        if told != kept:
            self._find("rows", f"{name} is {told} by the log and {kept} in the row")


def is_by_holder(told: LogEntry) -> bool:
    """Whether only the holder of the lease may have caused this event."""
    return told.kind in _BY_HOLDER or (
        told.kind in _ENDED and told.data is not None and not is_unserved(told)
    )


def is_unserved(told: LogEntry) -> bool:
    """Whether this event ended a ready run because no live worker knew its task."""
    return told.kind == EventKind.FAILED and told.worker is None


def is_by_sweep(told: LogEntry) -> bool:
    """Whether this event took back a lease that had run out."""
    if told.kind == EventKind.LOST:
        return True
    ended = told.kind in _ENDED and told.worker is not None
    return ended and told.data is None


def _task(task: object, version: object) -> str:
    return f"{task}@{version}"


def _claims(told: LogEntry) -> int:
    return int(told.kind == EventKind.CLAIMED)


def matches(text: str | None, digest: bytes | None) -> bool:
    """Whether a stored text has the hash it is stored with; nothing matches nothing."""
    if text is None or digest is None:
        return text is None and digest is None
    try:
        return digest_of(text) == digest
    except BadPayload:
        return False


def named_in(text: str) -> tuple[object, object]:
    """The task and the version that a stored spec names, None where it names none."""
    match unpack(text):
        case {"task": task, "version": version}:
            return task, version
        case _:
            return None, None
