# SPDX-License-Identifier: MIT
"""The verbs that read the log and check it, as `queries.py` has those of runs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from byrote.core.finding import Kept, Scene, Written
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


class Asked(msgspec.Struct, frozen=True):
    """What all of a verification needs to know first."""

    scene: Scene
    runs: int


def verify_scene() -> Query[Asked]:
    """What must be known of the whole database to judge one run, and how many runs there are."""
    return Query("verify_scene", {}, _scene_from)


def _scene_from(row: tuple[Any, ...]) -> Asked:
    now, horizon, alive, quiet, done_since, dead_since, runs = row
    micros = msgspec.json.decode(quiet, type=dict[str, int])
    since = {queue: _EPOCH + timedelta(microseconds=us) for queue, us in micros.items()}
    limits = {"Succeeded": done_since, "Cancelled": done_since, "Failed": dead_since}
    return Asked(Scene(now, horizon, alive, since, limits), runs)


def verify_runs() -> Query[Kept]:
    """Every run by id, as far as it is verified."""
    fields = Kept.__struct_fields__
    return Query("verify_runs", {}, lambda row: Kept(**dict(zip(fields, row, strict=True))))


def verify_events() -> Query[tuple[str, Told]]:
    """Every move of every run, run by run and in order."""
    return Query("verify_events", {}, lambda row: (row[0], rows.told_from(row[1:])))


def verify_written() -> Query[Written]:
    """What attempts wrote besides their end, run by run."""
    return Query("verify_written", {}, lambda row: Written(*row))


class Object(msgspec.Struct, frozen=True):
    """An index or a partition of ours."""

    kind: str
    name: str
    good: bool


def verify_catalog() -> Query[Object]:
    """Our indexes, whether each is valid, and our partitions."""
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
