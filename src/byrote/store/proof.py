# SPDX-License-Identifier: MIT
"""The verbs that read the log and check it, as `queries.py` has those of runs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from byrote.core.chain import Chained, Head
from byrote.core.finding import Kept, Recorded, Scene, Written
from byrote.core.told import Told
from byrote.store import rows
from byrote.store.query import Query

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def history(run_id: str, *, at: datetime | None = None) -> Query[Told]:
    """Every move of one run that the log still has, in order, up to a moment."""
    return Query("history", {"id": run_id, "at": at}, rows.told_from)


def chain(*, limit: int = 1_000) -> Query[int]:
    """Add one link to the chain; gives how many events it holds, nothing when there were none."""
    return Query("chain", {"limit": limit}, lambda row: int(row[0]))


class Counted(msgspec.Struct, frozen=True):
    """How many runs of a queue had this status at a moment, by who held them, and since when."""

    queue: str
    status: str
    worker: str | None
    runs: int
    since: datetime


def runs_at(at: datetime) -> Query[Counted]:
    """What lay in each queue at a moment, and who ran it."""
    return Query("runs_at", {"at": at}, lambda row: Counted(*row))


class WorkerThen(msgspec.Struct, frozen=True):
    """What the log tells of a worker in the hour up to a moment."""

    worker: str
    first_at: datetime
    last_at: datetime
    claimed: int
    ended: int
    lost: int


def workers_at(at: datetime) -> Query[WorkerThen]:
    """Workers that were heard of in the hour up to a moment."""
    return Query("workers_at", {"at": at}, lambda row: WorkerThen(*row))


class Happened(msgspec.Struct, frozen=True):
    """One event as it is streamed: a fact about a set of runs."""

    xid: str
    seq: int
    at: datetime
    kind: str
    worker: str | None
    leased_until: datetime | None
    runs: list[str]
    attempts: list[int]
    moves: list[int]
    data: msgspec.Raw | None

    @property
    def cursor(self) -> str:
        """What to give to `events` for what comes after this."""
        return f"{self.xid}.{self.seq}"


BEGINNING = "0.-1"
"""The cursor before all events."""


def events(
    cursor: str, *, kind: str | None = None, run_id: str | None = None, limit: int = 500
) -> Query[Happened]:
    """What happened after a cursor; asked again and again it tells every event exactly once."""
    xid, _, seq = cursor.partition(".")
    args = {"xid": xid, "seq": int(seq), "kind": kind, "run": run_id, "limit": limit}
    return Query("events", args, _happened_from)


def _happened_from(row: tuple[Any, ...]) -> Happened:
    data = None if row[-1] is None else msgspec.Raw(row[-1].encode())
    return Happened(**dict(zip(Happened.__struct_fields__, (*row[:-1], data), strict=True)))


def cursor(*, back: int) -> Query[str]:
    """The cursor after which the last `back` events lie; nothing when there are fewer."""
    return Query("cursor", {"back": back}, lambda row: f"{row[0]}.{row[1]}")


def quieten(queue: str, *, events: str) -> Query[str]:
    """Let a queue tell `all` kinds of events, or `few`."""
    return Query("quieten", {"queue": queue, "events": events}, lambda row: str(row[0]))


class Asked(msgspec.Struct, frozen=True):
    """What all of a verification needs to know first."""

    scene: Scene
    runs: int


def verify_scene() -> Query[Asked]:
    """What must be known of the whole database to judge one run, and how many runs there are."""
    return Query("verify_scene", {}, _scene_from)


def _scene_from(row: tuple[Any, ...]) -> Asked:
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
    scene = Scene(now, horizon, alive, since, limits, frozenset(environments), overdue)
    return Asked(scene, runs)


def verify_runs() -> Query[Kept]:
    """Every run by id, as far as it is verified."""
    fields = Kept.__struct_fields__
    return Query("verify_runs", {}, lambda row: Kept(**dict(zip(fields, row, strict=True))))


def verify_events() -> Query[tuple[str, Told]]:
    """Every move of every run, run by run and in order."""
    return Query("verify_events", {}, lambda row: (row[0], rows.told_from(row[1:])))


def verify_malformed() -> Query[tuple[int, str]]:
    """The number and the kind of events that no statement of ours has written."""
    return Query("verify_malformed", {}, lambda row: (row[0], row[1]))


def verify_written() -> Query[Written]:
    """What is stored of runs besides their rows, run by run."""
    return Query("verify_written", {}, lambda row: Written(*row))


def verify_recorded() -> Query[Recorded]:
    """What the log tells of steps and artifacts, run by run and in order."""
    return Query("verify_recorded", {}, lambda row: Recorded(*row))


class Stored(msgspec.Struct, frozen=True):
    """A text that is kept with its hash; `agrees` is whether others have the same of it."""

    kind: str
    name: str
    run: str | None
    text: str | None
    hash: bytes | None
    agrees: bool


def verify_stored() -> Query[Stored]:
    """What is stored with its hash besides runs and steps, and artifacts without their content."""
    return Query("verify_stored", {}, lambda row: Stored(*row))


def databases() -> Query[str]:
    """The names of this server's databases."""
    return Query("databases", {}, lambda row: str(row[0]))


def homes() -> Query[str]:
    """The schemas of this database that hold a Byrote of some version."""
    return Query("homes", {}, lambda row: str(row[0]))


class Object(msgspec.Struct, frozen=True):
    """An index, a constraint or a partition of ours."""

    kind: str
    name: str
    good: bool


def verify_catalog() -> Query[Object]:
    """Our indexes and constraints, whether each is valid, and our partitions."""
    return Query("verify_catalog", {}, lambda row: Object(*row))


class Link(msgspec.Struct, frozen=True):
    """A link of the chain beside what the log gives for it now."""

    number: int
    events: int
    found: int
    same: bool | None


def verify_chain(*, horizon: datetime) -> Query[Link]:
    """Every link of the chain whose events are still kept."""
    return Query("verify_chain", {"horizon": horizon}, lambda row: Link(*row))


def verify_head(kept: Head | None) -> Query[Chained]:
    """The end of the chain, beside the link that a kept head names."""
    return Query("verify_head", {"kept": None if kept is None else kept.link}, _chained_from)


def _chained_from(row: tuple[Any, ...]) -> Chained:
    link, digest, linked_at, noted, first, there, unchained = row
    head = None if link is None else Head(link=link, hash=digest, linked_at=linked_at)
    return Chained(head=head, noted=noted, first=first, there=there, unchained=unchained)
