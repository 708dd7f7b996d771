# SPDX-License-Identifier: MIT
"""Commands on all runs that match filters: retry, cancel, and purge of a queue.

The runs are counted first, and only those up to the newest counted one are changed: a producer that
keeps enqueueing does not make a command run forever. Each batch is one statement, with the same
events as the commands on single runs.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from byrote.assembly.operations.verbs import (
    BATCH,
    Moving,
    Operation,
    known_queue,
)
from byrote.core.ports.replies import DoneRuns
from byrote.store import queries
from byrote.store.locks import Moves, Verb
from byrote.store.queries.matching import (
    FIRST,
    PURGED,
    MatchCount,
    RunFilter,
    Since,
    cancel_filter,
    retry_filter,
    retry_verb,
)
from byrote.store.queries.retention import QueueRetention, read_retention
from byrote.store.rows import MovedRun


def count(chosen: RunFilter) -> Operation[list[MatchCount]]:
    """Return how many runs match, by status."""
    found: list[MatchCount] = yield queries.count_matching(chosen)
    return found


def move_matching(
    verb: Verb[Any],
    chosen: RunFilter,
    newest: str,
    *,
    report: Callable[[int], object] = lambda _runs: None,
) -> Operation[DoneRuns[str]]:
    """Change the runs that match, up to the newest; `report` gets the size of each batch."""
    done: DoneRuns[str] = DoneRuns()
    after: str | None = FIRST
    while after is not None:
        ids: Sequence[str] = yield queries.matching(chosen, after=after, newest=newest, limit=BATCH)
        if ids:
            moves: Moves[Any] = yield Moving(verb, ids)
            changed = [row.id if isinstance(row, MovedRun) else row for row in moves.done]
            done.add(changed, moves.locked)
            report(len(ids))
        after = ids[-1] if len(ids) == BATCH else None
    return done


def _all_matching(verb: Verb[Any], chosen: RunFilter) -> Operation[DoneRuns[str]]:
    found = yield from count(chosen)
    if not found:
        return DoneRuns()
    return (yield from move_matching(verb, chosen, max(one.newest for one in found)))


def retry_runs(
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    since: Since = None,
) -> Operation[DoneRuns[str]]:
    """Retry the dead letters that match, with a fresh budget; returns the ids of those.

    With `status="waiting"`, waiting runs become ready instead. `since` is a moment or an age such
    as `"1h"`: runs that failed since then, or waiting runs that were enqueued since then.
    """
    chosen = retry_filter(
        status=status, queue=queue, task=task, spec_hash=spec_hash, labels=labels, since=since
    )
    return (yield from _all_matching(retry_verb(chosen), chosen))


def cancel_runs(
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    since: Since = None,
) -> Operation[DoneRuns[str]]:
    """Cancel the unfinished runs that match; returns the ids of those.

    Running ones are asked to stop. `since` is a moment or an age such as `"1h"`: runs that were
    enqueued since then.
    """
    chosen = cancel_filter(
        status=status, queue=queue, task=task, spec_hash=spec_hash, labels=labels, since=since
    )
    return (yield from _all_matching(queries.cancel, chosen))


def purge(queue: str) -> Operation[DoneRuns[str]]:
    """Cancel the waiting and ready runs of a queue; returns the ids of those.

    Running attempts continue. Raises UnknownQueue.
    """
    chosen = RunFilter(PURGED, queue=(yield from known_queue(queue)))
    return (yield from _all_matching(queries.cancel, chosen))


def set_retention(
    queue: str,
    *,
    keep_done: timedelta | str | float | None = None,
    keep_dead: timedelta | str | float | None = None,
) -> Operation[QueueRetention]:
    """Set how long a queue keeps ended runs and dead letters; None leaves a setting unchanged.

    Returns both. Ended runs are kept for a day at least. Raises UnknownQueue.
    """
    name = yield from known_queue(queue)
    [found] = yield queries.set_retention([name], **read_retention(keep_done, keep_dead))
    return found  # type: ignore[no-any-return]
