# SPDX-License-Identifier: MIT
"""Compares the diaries of every process with the final state of the database.

The verifier trusts nothing but the database; this module trusts nothing but the diaries. Together
they find what neither could alone: an acknowledged run that is not there, a result that another
attempt wrote, an attempt that was executed twice, a report that was accepted and is gone or was
never committed, two successes of one run, a lease reported as lost whose attempt was settled.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from byrote.core.state import FINAL
from byrote.core.verdict import ENDS
from byrote.lab.torture.diary import lines, read

TAIL_S = 5.0
"""How long before an asynchronous failover what was acknowledged may be lost."""
SHADOW_S = 20.0
"""How long before it a run may have begun that it undid: longer than any attempt lasts."""


FINISHED = frozenset(end.kind for end in ENDS)
"""Events that a worker logs when the database has stored how an attempt ended."""


class Violation(msgspec.Struct, frozen=True):
    """A violation, seen from outside the database."""

    kind: str
    run: str
    message: str


class DiaryFacts(msgspec.Struct):
    """Facts from the diaries, by run."""

    ok: dict[str, float] = {}
    """When each was acknowledged."""
    refused: set[str] = set()
    unknown: set[str] = set()
    starts: Counter[tuple[str, int]] = msgspec.field(default_factory=Counter)
    started: dict[str, list[float]] = {}
    """When attempts of each began."""
    logged: Counter[tuple[str, int, str]] = msgspec.field(default_factory=Counter)
    """How often workers logged that a run's attempt was settled, and as what."""
    given_up: set[tuple[str, int, str]] = set()
    """Runs, attempts and workers of leases that were logged as lost."""
    keyed_twice: list[str] = []
    """Runs beyond the first of an Idempotency-Key."""
    lost: int = 0
    """Reports that came too late and were rejected."""
    lost_at: list[float] = []
    """When the primary of an asynchronous replica was killed."""


def gather(folder: Path, logs: Iterable[Path]) -> DiaryFacts:
    """Read every diary and every worker's log."""
    seen = DiaryFacts()
    for line in read(folder):
        _take(seen, line)
    for log in logs:
        for line in lines(log):
            match line.get("event"):
                case kind if kind in FINISHED and line["attempt"]:  # 0: ended without one.
                    seen.logged[line["run"], line["attempt"], kind] += 1
                case "LeaseRefused":
                    seen.lost += 1
                    seen.given_up.add((line["run"], line["attempt"], line["worker"]))
    return seen


def _take(seen: DiaryFacts, line: Mapping[str, Any]) -> None:
    match line["what"]:
        case "ok":
            seen.ok.update(dict.fromkeys(line["ids"], line["t"]))
        case "fail":
            seen.refused.update(line["ids"])
        case "unknown":
            seen.unknown.update(line["ids"])
        case "keyed":
            seen.keyed_twice += line["twice"]
        case "start":
            seen.starts[line["run"], line["attempt"]] += 1
            seen.started.setdefault(line["run"], []).append(line["t"])
        case "fault" if line.get("kind") == "failover_async" and line.get("shown"):
            seen.lost_at.append(line["shown"]["t"])


class Judgement(msgspec.Struct):
    """The violations found, and the figures."""

    violations: list[Violation]
    runs: int
    by_status: dict[str, int]
    executions: int
    again: int
    """Runs that were executed more often than was charged to them."""
    lost_in_tail: int
    """Acknowledged runs that an asynchronous failover lost, as it may."""
    ticks: int = 0
    """Moments at which the schedule was due, each of which must have one run."""
    unserved: int = 0
    """Runs of a task that no worker knows, each of which must end FAILED after its time."""


def judge(connection: psycopg.Connection[Any], seen: DiaryFacts) -> Judgement:
    """Compare the diaries with the database."""
    rows = {row[0]: row[1:] for row in connection.execute(_ROWS)}
    lost_in_tail = [i for i in seen.ok if i not in rows and _in_tail(seen, seen.ok[i])]
    written = {(row[0], row[1], row[2]): row[3] for row in connection.execute(_WRITTEN)}
    found = [*_compare(rows, seen), *_believed(written, seen)]
    starts: Counter[str] = Counter()
    for (run_id, _), count in seen.starts.items():
        starts[run_id] += count
    again = sum(starts[i] > max(row[2], 1) for i, row in rows.items())
    by_status = Counter(row[0] for row in rows.values())
    executions = sum(starts.values())
    return Judgement(found, len(rows), dict(by_status), executions, again, len(lost_in_tail))


_ROWS = """
select
  result_id::text, status, attempts, charged,
  case when status = 'SUCCESSFUL' then (return_json::jsonb ->> 'attempt')::integer end,
  coalesce(return_json like '%zombie%', false)
from byrote_runs
where task_path like 'torture.%'
"""


_WRITTEN = """
select result_id::text, attempt, kind, worker
from byrote_event_log
where kind in ('Succeeded', 'Released')
  or (kind in ('Retried', 'Failed', 'Cancelled', 'Snoozed', 'Crashed') and data ? 'reported')
"""
"""Events that holders of leases wrote; sweeps write some of the same kinds and are left out."""


def _in_tail(seen: DiaryFacts, t: float) -> bool:
    return any(-TAIL_S < t - at < TAIL_S for at in seen.lost_at)


def _undone(seen: DiaryFacts, run_id: str) -> bool:
    times = seen.started.get(run_id, ())
    return any(-SHADOW_S < t - at < TAIL_S for t in times for at in seen.lost_at)


def _compare(rows: Mapping[str, tuple[Any, ...]], seen: DiaryFacts) -> Iterator[Violation]:
    for run_id, t in seen.ok.items():
        if run_id not in rows and not _in_tail(seen, t):
            yield Violation("lost", run_id, "was acknowledged and is not in the database")
    for run_id in seen.keyed_twice:
        yield Violation("keyed", run_id, "is a second run of one Idempotency-Key")
    for run_id in seen.refused & rows.keys():
        yield Violation("ghost", run_id, "was refused and is in the database")
    for run_id, (status, attempts, _, writer, zombie) in rows.items():
        if status not in FINAL:
            yield Violation("stuck", run_id, f"is {status} though there was peace for long enough")
        if status == "SUCCESSFUL" and (writer != attempts or zombie):
            who = "a zombie" if zombie else f"attempt {writer}"
            yield Violation("stranger", run_id, f"attempt {attempts} holds a result of {who}")
        elif status == "SUCCESSFUL" and not seen.starts[run_id, attempts]:
            yield Violation("invented", run_id, f"attempt {attempts} was never executed")
    yield from _strict(rows, seen)


def _strict(rows: Mapping[str, tuple[Any, ...]], seen: DiaryFacts) -> Iterator[Violation]:
    """Check rules that hold except for runs that an asynchronous failover may have undone."""
    for (run_id, attempt), count in seen.starts.items():
        if count > 1 and not _undone(seen, run_id):
            yield Violation("twice", run_id, f"attempt {attempt} was executed {count} times")
    for run_id, attempt, kind in seen.logged:
        kept = rows.get(run_id)
        if kind != "Succeeded" or _undone(seen, run_id):
            continue
        if kept is None or kept[0] != "SUCCESSFUL" or kept[1] != attempt:
            is_now = "gone" if kept is None else f"{kept[0]} with attempt {kept[1]}"
            text = f"its success with attempt {attempt} was accepted; it is {is_now}"
            yield Violation("forgotten", run_id, text)


def _believed(written: Mapping[tuple[str, int, str], str], seen: DiaryFacts) -> Iterator[Violation]:
    """Compare the ends of attempts in the workers' logs with the database's event log."""
    for (run_id, attempt, kind), times in seen.logged.items():
        if _undone(seen, run_id):
            continue
        if (run_id, attempt, kind) not in written:
            text = f"attempt {attempt} was logged as {kind}, which was never committed"
            yield Violation("unwritten", run_id, text)
        if times > 1:
            text = f"attempt {attempt} was logged as {kind} by {times} workers"
            yield Violation("believed_twice", run_id, text)
    successes = Counter(run_id for run_id, _, kind in seen.logged if kind == "Succeeded")
    for run_id, times in successes.items():
        if times > 1 and not _undone(seen, run_id):
            yield Violation("believed_twice", run_id, f"{times} attempts were logged as successes")
    ended = {(run_id, attempt, worker) for (run_id, attempt, _), worker in written.items()}
    for run_id, attempt, worker in seen.given_up & ended:
        text = f"{worker} logged attempt {attempt} as lost, which it had settled"
        yield Violation("misreported", run_id, text)
