# SPDX-License-Identifier: MIT
"""Reads a whole database in one snapshot and judges every run in it, in bounded memory.

Four cursors read the rows, the log, the rows of runs in other tables, and what the log has of
those, all by run id; they are walked side by side, so that one run is in memory at a time. The
server sorts the log on its disk. Nothing is written or locked: workers continue meanwhile.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import groupby
from typing import Any

import msgspec
import psycopg

from byrote.core.errors import SchemaMismatch
from byrote.core.log.audit import LogAudit, matches
from byrote.core.log.chain import Head, judge_chain
from byrote.core.log.contents import Records
from byrote.core.log.findings import CHECKS, DatabaseFacts, Finding, RunRow
from byrote.core.log.record import LogEntry
from byrote.store import migrate, queries
from byrote.store.connect import DatabaseAddress
from byrote.store.query import Query
from byrote.store.runners.sync import fetch

PAGE = 2_000
SHOWN_MAX = 1_000
"""Findings in the report; all of them are counted."""
DAILY = ("byrote_archive", "byrote_events", "byrote_outputs")

type OnProgress = Callable[[int, int], None]


class VerifyReport(msgspec.Struct, frozen=True):
    """How much a verification read and what it found."""

    runs: int
    events: int
    counts: dict[str, int]
    """Findings by check; a database without Byrote's tables is checked for these only."""
    findings: list[Finding]
    head: Head | None = None
    """The last link of the chain, None if the log is not chained."""
    unchained: int = 0
    """Events after the last link."""
    uncovered: int = 0
    """Runs without a hash of their spec or result in the log: they are older, or it was dropped."""

    @property
    def sound(self) -> bool:
        """Whether the verification found nothing."""
        return not any(self.counts.values())


class _Notes:
    def __init__(self) -> None:
        self.runs = 0
        self.events = 0
        self.checks: Iterable[str] = CHECKS
        self.counts: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.head: Head | None = None
        self.unchained = 0
        self.uncovered = 0

    def add(self, found: Iterable[Finding]) -> None:
        for finding in found:
            self.counts[finding.check] += 1
            if len(self.findings) < SHOWN_MAX:
                self.findings.append(finding)

    @property
    def report(self) -> VerifyReport:
        counts = {check: self.counts[check] for check in self.checks}
        return VerifyReport(
            self.runs, self.events, counts, self.findings, self.head, self.unchained, self.uncovered
        )


def verify(
    address: DatabaseAddress,
    *,
    on_progress: OnProgress = lambda _done, _whole: None,
    kept: Head | None = None,
) -> VerifyReport:
    """Run every check on one snapshot; `on_progress` receives the number of runs done.

    `kept` is a head of the chain from an earlier verification, which must still be in it.
    """
    with address.open("verify", "jit=off") as connection, connection.transaction():
        connection.execute("set transaction isolation level repeatable read, read only")
        return verify_on(connection, on_progress=on_progress, kept=kept)


def verify_on(
    connection: psycopg.Connection[Any],
    *,
    on_progress: OnProgress = lambda _done, _whole: None,
    kept: Head | None = None,
) -> VerifyReport:
    """Verify the database as this transaction sees it."""
    notes = _Notes()
    try:
        migrate.check(connection)
    except SchemaMismatch as error:
        notes.checks = ("catalog",)
        notes.add([Finding("catalog", str(error))])
        return notes.report
    [start] = fetch(connection, queries.verify_scene())
    notes.add(_catalog(fetch(connection, queries.verify_catalog()), start.scene))
    notes.add(_chain(connection, start.scene))
    [chained] = fetch(connection, queries.verify_head(kept))
    notes.head, notes.unchained = chained.head, chained.unchained
    notes.add(judge_chain(chained, kept))
    notes.add(_stored(connection))
    notes.add(
        Finding("moves", f"event {seq} ({kind}) is malformed")
        for seq, kind in _stream(connection, queries.verify_malformed())
    )
    _judge_all(connection, start, notes, on_progress)
    return notes.report


def _judge_all(
    connection: psycopg.Connection[Any],
    start: queries.VerifyStart,
    notes: _Notes,
    on_progress: OnProgress,
) -> None:
    rows = _stream(connection, queries.verify_runs())
    entries = _stream(connection, queries.verify_events())
    beside = _side_by_side(
        groupby(rows, key=lambda row: row.id),
        groupby(entries, key=lambda entry: entry.run or ""),
        groupby(_stream(connection, queries.verify_written()), key=lambda write: write.run),
        groupby(_stream(connection, queries.verify_recorded()), key=lambda record: record.run),
    )
    for run_id, groups in beside:
        examiner = LogAudit(run_id, start.scene, Records(groups[2], groups[3]))
        notes.add(_judge(examiner, notes, groups[0], groups[1]))
        notes.uncovered += not examiner.covered
        notes.runs += 1
        on_progress(notes.runs, start.runs)


def _judge(
    examiner: LogAudit,
    notes: _Notes,
    stored: Iterable[RunRow],
    entries: Iterable[LogEntry],
) -> list[Finding]:
    rows = list(stored)
    queue = rows[0].queue if rows else None
    for event in entries:
        notes.events += 1
        examiner.add(event, queue=queue)
    return examiner.close(*rows)


def _side_by_side(*streams: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each id once, in order, with the items of every stream."""
    heads = [next(stream, None) for stream in streams]
    while any(head is not None for head in heads):
        least = min(head[0] for head in heads if head is not None)
        yield least, [head[1] if head is not None and head[0] == least else () for head in heads]
        heads = [
            next(stream, None) if head is not None and head[0] == least else head
            for stream, head in zip(streams, heads, strict=True)
        ]


def _stream[Row](connection: psycopg.Connection[Any], query: Query[Row]) -> Iterator[Row]:
    with connection.cursor(name=query.name, binary=True) as cursor:
        cursor.itersize = PAGE
        cursor.execute(query.sql, query.args)
        for row in cursor:
            yield query.read(row)


_DISAGREES = {
    "signal": "the step that received it has another payload",
    "memo": "the run it came from has another result",
    "artifact": "its content is missing or different",
}


def _stored(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    for stored in _stream(connection, queries.verify_stored()):
        what = f"{stored.kind} {stored.name}"
        if not matches(stored.text, stored.hash):
            yield Finding("results", f"{what} does not match its hash", stored.run)
        elif not stored.agrees:
            yield Finding("results", f"{what}: {_DISAGREES[stored.kind]}", stored.run)


def _catalog(objects: Iterable[queries.CatalogObject], scene: DatabaseFacts) -> Iterator[Finding]:
    for item in objects:
        if not item.good:
            text = f"{item.kind} {item.name} is invalid: drop it and create it again"
            yield Finding("catalog", text)
    for kind, expected in (("index", expected_indexes()), ("constraint", expected_constraints())):
        there = {item.name for item in objects if item.kind == kind}
        for name in sorted(expected - there):
            yield Finding("catalog", f"{kind} {name} is missing")
    tomorrow = scene.now + timedelta(days=1)
    partitions = {item.name.rpartition(" ")[2] for item in objects if item.kind == "partition"}
    for parent in DAILY if scene.alive else ():
        tomorrows = f"{parent}_{tomorrow:%Y%m%d}"
        if tomorrows not in partitions:
            yield Finding("catalog", f"partition {tomorrows} is missing, though a worker is alive")


def expected_indexes() -> set[str]:
    """Return the indexes that the migrations create and do not drop, primary keys included."""
    names: set[str] = set()
    pattern = r"create (?:unique )?index (\w+)|drop index (\w+)"
    for made, dropped in re.findall(pattern, _migrated(), re.IGNORECASE):
        names = names | {made} if made else names - {dropped}
    return names | {f"{table}_pkey" for table, body in _tables() if "primary key" in body}


def expected_constraints() -> set[str]:
    """Return the named check constraints of the migrations, each with its table."""
    by_table: dict[str, list[str]] = {}
    for table, body in _tables():
        copied = [name for other in re.findall(r"like (\w+) ", body) for name in by_table[other]]
        by_table[table] = re.findall(r"constraint (byrote_\w+)", body) + copied
    added = re.findall(r"alter table (\w+)[^;]*?add constraint (byrote_\w+)", _migrated())
    dropped = re.findall(r"alter table (\w+)[^;]*?drop constraint (byrote_\w+)", _migrated())
    made = [(table, name) for table, names in by_table.items() for name in names] + added
    return {f"{table}.{name}" for table, name in set(made) - set(dropped)}


def _tables() -> list[tuple[str, str]]:
    return re.findall(r"create table (\w+) \((.*?)\n\)", _migrated(), re.DOTALL)


def _migrated() -> str:
    texts = (migration.text.decode() for migration in migrate.migrations())
    return re.sub(r"--[^\n]*", "", "\n".join(texts))


def _chain(connection: psycopg.Connection[Any], scene: DatabaseFacts) -> Iterator[Finding]:
    for link in _stream(connection, queries.verify_chain(horizon=scene.horizon)):
        if link.found != link.events:
            text = f"link {link.number} has {link.found} events instead of {link.events}"
            yield Finding("chain", text)
        elif not link.same:
            text = f"the events of link {link.number} have changed since it was added"
            yield Finding("chain", text)
