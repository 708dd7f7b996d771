# SPDX-License-Identifier: MIT
"""The verbs of runs that no live worker can execute."""

from datetime import timedelta
from typing import Any

from byrote.core.unserved import Ended, Standing, Unserved
from byrote.store.query import Query

DEPTH = 200
"""How many runs at the front of each queue are looked at."""
_TASK = ("queue", "task", "version", "since", "waited_s", "known", "unserved_for")
_ENDED = ("id", "queue", "task", "version", "attempt")
_STANDING = (
    "status", "queue", "task", "version", "wait_reason", "due", "paused", "served", "known",
    "tasks", "unserved_for",
)  # fmt: skip


def _unserved_from(row: tuple[Any, ...]) -> Unserved:
    return Unserved(**dict(zip(_TASK, row, strict=False)))


def note_unserved(*, depth: int = DEPTH) -> Query[Unserved]:
    """Note the tasks that no live worker of their queue knows; returns those that are new."""
    return Query("note_unserved", {"depth": depth}, _unserved_from)


def fail_unserved(*, limit: int) -> Query[Ended]:
    """End runs whose task was unknown for as long as their queue waits."""
    return Query(
        "fail_unserved",
        {"limit": limit},
        lambda row: Ended(**dict(zip(_ENDED, row, strict=True))),
    )


def unserved_tasks() -> Query[Unserved]:
    """The tasks that no live worker of their queue knows, as last noted."""
    return Query("unserved_tasks", {}, _unserved_from)


def standing(run_id: str) -> Query[Standing]:
    """Where an unfinished run stands."""
    return Query(
        "standing", {"id": run_id}, lambda row: Standing(**dict(zip(_STANDING, row, strict=True)))
    )


def set_unserved(queue: str, *, after: timedelta | None) -> Query[str]:
    """Set how long a queue's runs wait for a worker that knows their task; None is for ever."""
    return Query("set_unserved", {"queue": queue, "after": after}, lambda row: str(row[0]))
