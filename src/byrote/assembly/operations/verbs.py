# SPDX-License-Identifier: MIT
"""Every operation of an app as a script that yields queries; `methods.py` runs them.

The names are those of the command line, of HTTP and of the SDK.
"""

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import batched
from typing import Any

import msgspec

from byrote.assembly.handles import note_withheld
from byrote.assembly.identity import new_id
from byrote.core.errors import BadOption, RunNotFound, UnknownQueue
from byrote.core.json.codec import pack
from byrote.core.ports.replies import DoneRuns
from byrote.core.run import Run
from byrote.core.state import Status
from byrote.core.text.ids import is_uuid
from byrote.executors.runtime.steps.call import check_name
from byrote.store import queries
from byrote.store.locks import Moves, Verb
from byrote.store.queries.matching import Since, read_since
from byrote.store.query import Query
from byrote.store.rows import MovedRun, QueueRow, WorkerRow

BATCH = 1_000
"""Runs that one statement changes."""
LIMIT_MAX = 10_000
"""Runs in one list."""


class Moving(msgspec.Struct, frozen=True):
    """A command on runs, which is sent again for rows that are locked."""

    verb: Verb[Any]
    ids: Sequence[str]


type Operation[Done] = Generator[Query[Any] | Moving, Any, Done]
"""Yields queries and commands, receives their rows or Moves, and returns the result."""


def checked_id(run_id: str) -> str:
    """Return a run's id; raises RunNotFound for a text that cannot be one."""
    if not is_uuid(run_id):
        raise RunNotFound(run_id)
    return run_id


# -- Lists ---------------------------------------------------------------------------------------


def runs(
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    shadow: bool = False,
    before: Run | str | None = None,
    limit: int = 50,
    since: Since = None,
) -> Operation[list[Run]]:
    """Return the newest runs that match, without arguments and results.

    `before` is the last run of the page before, or its id. `since` is a moment or an age such as
    `"1h"`: runs that ended since then or, if they have not ended, were enqueued.
    """
    older = before.id if isinstance(before, Run) else before
    found: list[Run] = yield queries.runs(
        status=None if status is None else _status(status),
        queue=queue,
        task=task,
        spec_hash=spec_hash,
        labels=labels or None,
        shadow=shadow,
        before=None if older is None else checked_id(older),
        limit=_limit(limit),
        since=read_since(since),
    )
    return found


def _status(text: str) -> str:
    if text.upper() not in set(Status):
        known = ", ".join(Status)
        raise BadOption(f"A status is one of {known}, not {text!r}.")
    return text.upper()


def _limit(limit: int) -> int:
    if not 1 <= limit <= LIMIT_MAX:
        raise BadOption(f"The limit is a number from 1 to {LIMIT_MAX:,}, not {limit!r}.")
    return limit


def dead(
    *,
    queue: str | None = None,
    task: str | None = None,
    before: Run | str | None = None,
    limit: int = 50,
) -> Operation[list[Run]]:
    """Return dead letters, the latest first, without arguments and results.

    `before` is the last one of the page before, or its id.
    """
    last = (yield from _run(before)) if isinstance(before, str) else before
    at = None if last is None else (_finished(last), last.id)
    found: list[Run] = yield queries.dead(queue=queue, task=task, before=at, limit=_limit(limit))
    return found


def _finished(run: Run) -> datetime:
    if run.finished_at is None:
        raise BadOption(f"Run {run.id} is not a dead letter; pass one to list those before it.")
    return run.finished_at


def _run(run_id: str) -> Operation[Run]:
    found: list[Run] = yield queries.run(checked_id(run_id))
    if not found:
        raise RunNotFound(run_id)
    return found[0]


def queues() -> Operation[list[QueueRow]]:
    """Return every queue with its counts of runs."""
    found: list[QueueRow] = yield queries.queues()
    return found


def workers() -> Operation[list[WorkerRow]]:
    """Return recently seen workers; `alive` is False for those without a heartbeat."""
    found: list[WorkerRow] = yield queries.workers()
    return found


# -- Queues --------------------------------------------------------------------------------------


def known_queue(name: str) -> Operation[str]:
    """Return a queue's name; raises UnknownQueue: the name is most likely mistyped."""
    known = [queue.queue for queue in (yield queries.queues())]
    if name not in known:
        raise UnknownQueue(name, known)
    return name


def pause(queue: str) -> Operation[bool]:
    """Stop claims from a queue; running attempts continue. Returns False if it was paused."""
    [changed] = yield queries.pause((yield from known_queue(queue)))
    return bool(changed)


def resume(queue: str) -> Operation[bool]:
    """Allow claims from a queue again; returns False if it was not paused."""
    changed = yield queries.resume((yield from known_queue(queue)))
    return True in changed


# -- Runs ----------------------------------------------------------------------------------------


def cancel(run_id: str) -> Operation[bool]:
    """Cancel a run: at once, or by asking its worker; returns False if it had finished.

    Raises RunNotFound, or RowLocked if another transaction has locked it for over a second.
    """
    if note_withheld("cancel", run_id):
        return True
    return (yield from _move_one(queries.cancel, run_id))


def retry(run_id: str) -> Operation[bool]:
    """Make a dead or waiting run ready now; returns False if it was neither.

    Raises RunNotFound, or RowLocked if another transaction has locked it for over a second.
    """
    if note_withheld("retry", run_id):
        return True
    return (yield from _move_one(queries.retry, run_id))


def _move_one(verb: Verb[Any], run_id: str) -> Operation[bool]:
    moves: Moves[Any] = yield Moving(verb, [checked_id(run_id)])
    if moves.only is None:
        yield from _known(run_id)
    return moves.only is not None


def _known(run_id: str) -> Operation[None]:
    if (yield queries.is_accepted(run_id)) != [True]:
        raise RunNotFound(run_id)


def cancel_many(ids: Sequence[str]) -> Operation[DoneRuns[str]]:
    """Cancel runs; returns the ids of those that had not finished."""
    return (yield from _move_all(queries.cancel, ids))


def retry_many(ids: Sequence[str]) -> Operation[DoneRuns[str]]:
    """Make dead or waiting runs ready now; returns the ids of those."""
    return (yield from _move_all(queries.retry, ids))


def requeue(ids: Sequence[str]) -> Operation[DoneRuns[str]]:
    """Bring dead letters back with a fresh budget of attempts; returns the ids of those."""
    return (yield from _move_all(partial(queries.retry, was=Status.FAILED), ids))


def delete(ids: Sequence[str]) -> Operation[DoneRuns[str]]:
    """Delete dead letters for good; returns the ids of those."""
    return (yield from _move_all(queries.delete_dead, ids))


def _move_all(verb: Verb[Any], ids: Sequence[str]) -> Operation[DoneRuns[str]]:
    if isinstance(ids, str):
        raise BadOption(f"Pass a list of run ids, not {ids!r}.")
    done: DoneRuns[str] = DoneRuns()
    for batch in batched([checked_id(run_id) for run_id in ids], BATCH):
        moves: Moves[Any] = yield Moving(verb, batch)
        changed = [row.id if isinstance(row, MovedRun) else row for row in moves.done]
        done.add(changed, moves.locked)
    return done


def signal(run_id: str, event: str, payload: Any = None) -> Operation[bool]:
    """Send a signal that a run waits for now or later; returns False if it has ended."""
    check_name(event)
    if note_withheld("signal", event):
        return True
    if (yield queries.signal(checked_id(run_id), new_id(), event, pack(payload))):
        return True
    yield from _known(run_id)
    return False
