# SPDX-License-Identifier: MIT
"""Queries of `byrote verify`."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from byrote.core.log.chain import Chained, Head
from byrote.core.log.findings import AttemptWrite, DatabaseFacts, LoggedRecord, RunRow
from byrote.core.log.record import LogEntry
from byrote.store import rows
from byrote.store.query import Query

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class VerifyStart(msgspec.Struct, frozen=True):
    """The facts that a verification reads first."""

    scene: DatabaseFacts
    runs: int


def verify_scene() -> Query[VerifyStart]:
    """The facts about the whole database that judging a run depends on, and the count of runs."""
    return Query("verify_scene", {}, _scene_from)


def _scene_from(row: tuple[Any, ...]) -> VerifyStart:
    now, horizon, alive, quiet, done_since, dead_since, runs, environments, late = row
    micros = msgspec.json.decode(quiet, type=dict[str, int])
    since = {queue: _EPOCH + timedelta(microseconds=us) for queue, us in micros.items()}
    limits = dict.fromkeys(("Succeeded", "Remembered", "Cancelled"), done_since)
    limits["Failed"] = dead_since
    tasks = msgspec.json.decode(late, type=list[tuple[str, str, int, int]])
    overdue = {
        (queue, task, version): _EPOCH + timedelta(microseconds=us)
        for queue, task, version, us in tasks
    }
    scene = DatabaseFacts(now, horizon, alive, since, limits, frozenset(environments), overdue)
    return VerifyStart(scene, runs)


def verify_runs() -> Query[RunRow]:
    """The verified columns of every run, by id."""
    fields = RunRow.__struct_fields__
    return Query("verify_runs", {}, lambda row: RunRow(**dict(zip(fields, row, strict=True))))


def verify_events() -> Query[LogEntry]:
    """Every move of every run, run by run and in order."""
    return Query("verify_events", {}, rows.entry_from)


def verify_malformed() -> Query[tuple[int, str]]:
    """The number and the kind of events that no statement of Byrote has written."""
    return Query("verify_malformed", {}, lambda row: (row[0], row[1]))


def verify_written() -> Query[AttemptWrite]:
    """Rows of runs in other tables, run by run."""
    return Query("verify_written", {}, lambda row: AttemptWrite(*row))


def verify_recorded() -> Query[LoggedRecord]:
    """The log's entries on steps and artifacts, run by run and in order."""
    return Query("verify_recorded", {}, lambda row: LoggedRecord(*row))


class StoredText(msgspec.Struct, frozen=True):
    """A text stored with its hash; `agrees` is whether other rows have the same."""

    kind: str
    name: str
    run: str | None
    text: str | None
    hash: bytes | None
    agrees: bool


def verify_stored() -> Query[StoredText]:
    """Stored texts with a hash besides runs and steps, and artifacts without their content."""
    return Query("verify_stored", {}, lambda row: StoredText(*row))


class CatalogObject(msgspec.Struct, frozen=True):
    """An index, a constraint or a partition of Byrote's tables."""

    kind: str
    name: str
    good: bool


def verify_catalog() -> Query[CatalogObject]:
    """Byrote's indexes and constraints, whether each is valid, and its partitions."""
    return Query("verify_catalog", {}, lambda row: CatalogObject(*row))


class CheckedLink(msgspec.Struct, frozen=True):
    """A link of the chain beside what the log has for it now."""

    number: int
    events: int
    found: int
    same: bool | None


def verify_chain(*, horizon: datetime) -> Query[CheckedLink]:
    """Every link of the chain whose events are still stored."""
    return Query("verify_chain", {"horizon": horizon}, lambda row: CheckedLink(*row))


def verify_head(kept: Head | None) -> Query[Chained]:
    """The end of the chain, beside the link that a kept head names."""
    return Query("verify_head", {"kept": None if kept is None else kept.link}, _chained_from)


def _chained_from(row: tuple[Any, ...]) -> Chained:
    link, digest, linked_at, noted, first, there, unchained = row
    head = None if link is None else Head(link=link, hash=digest, linked_at=linked_at)
    return Chained(head=head, noted=noted, first=first, there=there, unchained=unchained)
