# SPDX-License-Identifier: MIT
"""The store as a pure model: what every verb does, in plain Python, without SQL or a clock.

Two things lean on it. `test_model.py` drives it and the real store side by side and compares them
after every step; `world.py` uses it as the database of a simulated world, where a thousand crashes
cost a second. So what the simulation shows holds for the SQL as far as the two were seen to agree.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from byrote.core.json.codec import digest_of
from byrote.core.log.findings import RunRow
from byrote.core.log.record import LogEntry
from byrote.core.policy import LOSSES_MAX
from byrote.core.verdict import ENDS

START = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
NEVER_AGES = 10_000_000_000_000
SPEC = '{"task":"t","version":1,"args":[],"kwargs":{}}'
SPEC_HASH = digest_of(SPEC)
RESULT_HASH = digest_of("null")
"""All runs of the model have one spec, and those that succeed one result."""
LIVE = {"WAITING", "READY", "RUNNING"}
KINDS = {end.letter: end.kind for end in ENDS}


@dataclass
class Row:
    id: str
    queue: str
    rank: int
    run_after: datetime
    enqueued_at: datetime
    max_attempts: int
    status: str
    wait_reason: str | None = None
    attempts: int = 0
    charged: int = 0
    losses: int = 0
    moves: int = 1
    leased_by: str | None = None
    lease_token: str | None = None
    leased_until: datetime | None = None
    started_at: datetime | None = None
    last_attempted_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    finished_at: datetime | None = None
    table: str = "queue"
    told: list[LogEntry] = field(default_factory=list)


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


class Model:
    """Every run and its events; `fenced=False` removes the fence."""

    def __init__(self, *, fenced: bool = True) -> None:
        self.now = START
        self.rows: dict[str, Row] = {}
        self.paused: set[str] = set()
        self.fenced = fenced

    def _tell(self, row: Row, kind: str, **more: Any) -> None:
        attempt = more.pop("attempt", None) or row.attempts
        said = LogEntry(kind=kind, at=self.now, move=row.moves, attempt=attempt, schema=3, **more)
        row.told.append(said)

    def _move(self, row: Row, kind: str, *, tell: Any = None, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(row, name, value)
        row.moves += 1
        self._tell(row, kind, **(tell or {}))

    def enqueue(
        self, ids: Sequence[str], *, queue: str, delay: timedelta, priority: int, attempts: int
    ) -> None:
        due = self.now + delay
        waits = due > self.now
        for place, run_id in enumerate(ids, start=1):
            rank = micros(due) + place - priority * NEVER_AGES
            row = Row(run_id, queue, rank, due, self.now, attempts, "WAITING" if waits else "READY")
            row.wait_reason = "due" if waits else None
            self.rows[run_id] = row
            data = {"run_after": due.isoformat()} if waits else None
            self._tell(row, "Enqueued", data=data, digest=SPEC_HASH)

    def known(self, run_id: str) -> bool:
        return run_id in self.rows

    def promote(self) -> int:
        due = [r for r in self.rows.values() if r.status == "WAITING" and r.run_after <= self.now]
        for row in due:
            self._move(row, "Promoted", status="READY", wait_reason=None)
        return len(due)

    def ready(self, queue: str) -> list[Row]:
        """What may be claimed from a queue, best first."""
        if queue in self.paused:
            return []
        found = [r for r in self.rows.values() if r.status == "READY" and r.queue == queue]
        return sorted(found, key=lambda row: (row.rank, row.id))

    def claim(
        self, worker: str, token: str, *, ids: Iterable[str], lease: timedelta
    ) -> list[tuple[str, int]]:
        claimed = []
        for row in (self.rows[run_id] for run_id in ids):
            changes: dict[str, Any] = {"status": "RUNNING", "leased_by": worker}
            changes |= {"lease_token": token, "leased_until": self.now + lease}
            changes |= {"attempts": row.attempts + 1, "last_attempted_at": self.now}
            changes["started_at"] = row.started_at or self.now
            said = {"worker": worker, "token": token, "leased_until": self.now + lease}
            self._move(row, "Claimed", tell=said, **changes)
            claimed.append((row.id, row.attempts))
        return claimed

    def claimed(self, token: str) -> list[tuple[str, int]]:
        return [
            (row.id, row.attempts)
            for row in self.rows.values()
            if row.lease_token == token and row.status == "RUNNING"
        ]

    def _held(self, run_id: str, token: str) -> Row | None:
        row = self.rows.get(run_id)
        if row is None or row.status != "RUNNING":
            return None
        if not self.fenced:
            return row
        alive = row.leased_until is not None and row.leased_until > self.now
        return row if row.lease_token == token and alive else None

    def renew(self, held: Iterable[tuple[str, str, int]], *, lease: timedelta) -> list[str]:
        kept = []
        for run_id, token, attempt in held:
            row = self._held(run_id, token)
            if row is not None:
                until = self.now + lease
                said = {"worker": row.leased_by, "leased_until": until, "attempt": attempt}
                self._move(row, "Renewed", leased_until=until, tell=said)
                kept.append(run_id)
        return kept

    def finish(self, verdicts: Iterable[tuple[str, str, int, str, int]]) -> dict[str, str]:
        """Verdicts are (id, token, attempt, letter, delay in microseconds)."""
        heard = {}
        for run_id, token, attempt, letter, delay_us in verdicts:
            row = self._held(run_id, token)
            if row is not None:
                heard[run_id] = self._settle(row, attempt, letter, delay_us)
        return heard

    def _settle(self, row: Row, attempt: int, said: str, delay_us: int) -> str:
        if said == "R" and row.charged + 1 >= row.max_attempts:
            said = "F"
        letter = said
        if row.cancel_requested_at is not None and said in "RZLX":
            letter = "C"
        waits = letter in "RZ" and delay_us > 0
        status = {"S": "SUCCESSFUL", "F": "FAILED", "C": "CANCELLED"}.get(letter, "READY")
        status = "WAITING" if waits else status
        reason = {"R": "retry", "Z": "snooze"}[letter] if waits else None
        changes: dict[str, Any] = {"status": status, "wait_reason": reason, "leased_until": None}
        changes["charged"] = row.charged + (said in "SRF")
        changes["losses"] = row.losses + (said == "X")
        if delay_us > 0 and letter != "F":
            due = self.now + timedelta(microseconds=delay_us)
            changes |= {"rank": row.rank + micros(due) - micros(row.run_after), "run_after": due}
        if letter in "SFC":
            changes["finished_at"] = self.now
        if letter == "F":
            changes["table"] = "dead"
        data = {"delay_us": delay_us, "reported": said, "status": status, "wait": reason}
        told = {"worker": row.leased_by, "attempt": attempt}
        told["data"] = None if letter in "SL" else data
        if letter == "S":
            told["digest"] = RESULT_HASH
        self._move(row, KINDS[letter], tell=told, **changes)
        return letter

    def settled(self, run_id: str, token: str) -> bool:
        row = self.rows[run_id]
        return row.lease_token == token and row.leased_until is None

    def sweep(self) -> list[str]:
        late = [r for r in self.rows.values() if r.leased_until and r.leased_until <= self.now]
        for row in late:
            hopeless = row.losses + 1 >= LOSSES_MAX
            changes: dict[str, Any] = {"losses": row.losses + 1, "leased_until": None}
            changes["lease_token"] = None
            if row.cancel_requested_at is not None:
                changes |= {"status": "CANCELLED", "finished_at": self.now}
            elif hopeless:
                changes |= {"status": "FAILED", "finished_at": self.now, "table": "dead"}
            else:
                changes["status"] = "READY"
            kind = {"CANCELLED": "Cancelled", "FAILED": "Failed"}.get(changes["status"], "Lost")
            self._move(row, kind, tell={"worker": row.leased_by}, **changes)
        return [row.id for row in late]

    def fail_unserved(self, queue: str, *, after: timedelta) -> list[str]:
        """End what is ready and no live worker of the queue has known for so long."""
        late = [row for row in self.ready(queue) if row.run_after <= self.now - after]
        for row in late:
            changes = {"status": "FAILED", "finished_at": self.now, "table": "dead"}
            self._move(row, "Failed", **changes)
        return [row.id for row in late]

    def cancel(self, ids: Iterable[str]) -> list[str]:
        found = [r for r in self._rows(ids) if r.status in LIVE]
        for row in found:
            if row.status == "RUNNING":
                self._move(row, "CancelRequested", cancel_requested_at=self.now)
            else:
                ended = {"finished_at": self.now, "cancel_requested_at": self.now}
                self._move(row, "Cancelled", status="CANCELLED", wait_reason=None, **ended)
        return [row.id for row in found]

    def retry(self, ids: Iterable[str]) -> list[str]:
        found = [r for r in self._rows(ids) if r.status in {"FAILED", "WAITING"}]
        for row in found:
            changes: dict[str, Any] = {"status": "READY", "wait_reason": None}
            changes["rank"] = row.rank + micros(self.now) - micros(row.run_after)
            changes["run_after"] = self.now
            if row.status == "FAILED":
                changes |= dict.fromkeys(("leased_by", "lease_token", "cancel_requested_at"))
                changes |= {"finished_at": None, "charged": 0, "losses": 0, "table": "queue"}
            self._move(row, "Revived", **changes)
        return [row.id for row in found]

    def _rows(self, ids: Iterable[str]) -> list[Row]:
        return [self.rows[run_id] for run_id in dict.fromkeys(ids) if run_id in self.rows]


def kept(row: Row) -> RunRow:
    """The row as the verifier sees it."""
    shared = {name: getattr(row, name) for name in RunRow.__struct_fields__ if name in row.__dict__}
    shared |= {"spec_json": SPEC, "spec_hash": SPEC_HASH, "task": "t", "version": 1}
    result = ("null", RESULT_HASH) if row.status == "SUCCESSFUL" else (None, None)
    return RunRow(
        **shared, result_json=result[0], result_hash=result[1], provenance=None, errors=[]
    )
