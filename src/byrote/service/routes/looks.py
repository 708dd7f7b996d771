# SPDX-License-Identifier: MIT
"""Routes for those who look on and look after: dead letters, queues, statistics, workers."""

import base64
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET

from byrote.core.duration import duration
from byrote.core.spec import check_name
from byrote.core.state import Status
from byrote.core.unserved import patience
from byrote.service.http.request import RequestContext
from byrote.service.routes.runs import brief_of, plain, revived
from byrote.service.routes.stats import queue_view, stats_of
from byrote.store import queries
from byrote.store.queries.queues import set_unserved, unserved_tasks
from byrote.wire import messages
from byrote.wire.problems import Invalid, Unavailable
from byrote.wire.terms import PAGE, PAGE_MAX

WINDOW_MIN, WINDOW_MAX = timedelta(minutes=1), timedelta(days=2)


class DeadFilters(msgspec.Struct, frozen=True):
    """Which dead letters."""

    queue: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    task: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)] = PAGE
    cursor: Annotated[str, msgspec.Meta(max_length=200)] | None = None


async def dead(call: RequestContext) -> messages.RunPage:
    """Dead letters that match, the latest first."""
    asked: DeadFilters = call.query
    found = await call.service.desk.all(
        queries.dead(
            queue=plain(asked.queue),
            task=plain(asked.task),
            queues=call.grant.queues,
            tasks=call.grant.tasks,
            before=_before(asked.cursor),
            limit=asked.limit + 1,
        )
    )
    page, more = found[: asked.limit], len(found) > asked.limit
    last = None
    if more and page[-1].finished_at is not None:
        last = base64.urlsafe_b64encode(
            f"{page[-1].finished_at.isoformat()} {page[-1].id}".encode()
        )
    return messages.RunPage(
        runs=[brief_of(run) for run in page], next=None if last is None else last.decode()
    )


def _before(cursor: str | None) -> tuple[datetime, str] | None:
    if cursor is None:
        return None
    try:
        at, _, run_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        moment = datetime.fromisoformat(at)
        digits = run_id.replace("-", "")
        if moment.tzinfo is None or len(digits) != 32 or int(digits, 16) < 0:
            raise ValueError(cursor)  # noqa: TRY301 -- said below, once.
    except ValueError:
        raise Invalid("cursor: give what an earlier page said under `next`.") from None
    return moment, digits


async def requeue(call: RequestContext) -> messages.MovedRuns:
    """Bring dead letters back with a fresh budget; what is not dead is missing from the answer."""
    requeued = partial(queries.retry, was=Status.FAILED)
    return revived(await call.move(requeued, call.body.runs, "requeue", list))


async def delete(call: RequestContext) -> messages.Deleted:
    """Delete dead letters for good."""
    moves = await call.move(queries.delete_dead, call.body.runs, "delete", list)
    return messages.Deleted(runs=moves.done, locked=moves.locked or UNSET)


async def artifacts(call: RequestContext) -> messages.ArtifactsReply:
    """What a run left behind besides its result."""
    await call.check_mine(call.path["id"])
    found = await call.service.desk.all(queries.artifacts(call.path["id"]))
    return messages.ArtifactsReply(
        artifacts=[
            messages.ArtifactView(
                attempt=row.attempt,
                name=row.name,
                hash=row.hash,
                size=row.size,
                media_type=row.media_type,
                at=row.at,
            )
            for row in found
        ]
    )


# -- Queues ----------------------------------------------------------------------------------------


async def queues(call: RequestContext) -> messages.QueuesReply:
    """Every queue the token may see, and what lies in it."""
    return messages.QueuesReply(queues=await _queues(call), count_max=queries.DEPTH_MAX)


async def _queues(
    call: RequestContext, only: Sequence[str] | None = None
) -> list[messages.QueueView]:
    allowed = call.grant.queues
    if only is not None:
        allowed = [name for name in only if allowed is None or name in allowed]
    found = await call.service.desk.all(queries.depths(queues=allowed, tasks=call.grant.tasks))
    strange: dict[str, list[str]] = defaultdict(list)
    for one in await call.service.desk.all(unserved_tasks()):
        if call.grant.tasks is None or one.task in call.grant.tasks:
            strange[one.queue].append(one.key)
    return [queue_view(row, strange[row.queue]) for row in found]


async def pause(call: RequestContext) -> messages.QueueState:
    """Stop claims from a queue; what is under way goes on."""
    return await _switch(call, paused=True)


async def resume(call: RequestContext) -> messages.QueueState:
    """Allow claims from a queue again."""
    return await _switch(call, paused=False)


async def _switch(call: RequestContext, *, paused: bool) -> messages.QueueState:
    name = check_name("queue", call.path["name"])
    call.grant.check([name])
    verb = queries.pause if paused else queries.resume
    action = "pause" if paused else "resume"
    await call.change(
        verb(name), action, lambda changed: [name] if any(changed) else [], subject=name
    )
    return messages.QueueState(queue=name, paused=paused)


async def wait_for_worker(call: RequestContext) -> messages.QueuePatience:
    """Set how long a queue's runs wait for a worker that knows their task."""
    asked: messages.SetUnserved = call.body
    name = check_name("queue", call.path["name"])
    call.grant.check([name])
    after = patience(asked.after)
    await call.change(set_unserved(name, after=after), "unserved", list, subject=name)
    seconds = None if after is None else after.total_seconds()
    return messages.QueuePatience(queue=name, unserved_for_s=seconds)


# -- Statistics ------------------------------------------------------------------------------------


class Window(msgspec.Struct, frozen=True):
    """Over how long."""

    window: Annotated[
        str, msgspec.Meta(max_length=40, description="One minute to two days, as in `5m`.")
    ] = "5m"


async def stats(call: RequestContext) -> messages.StatsReply:
    """Queues as they are now, and what tasks did within a window; counted as it happens."""
    try:
        window = duration(call.query.window)
    except ValueError as error:
        raise Invalid(f"window: {error}") from None
    if not WINDOW_MIN <= window <= WINDOW_MAX:
        raise Invalid("window: choose one between 1m and 2d.")
    desk = call.service.desk
    queues, tasks = call.grant.queues, call.grant.tasks
    return stats_of(
        window,
        duties=await desk.all(queries.counters()),
        queues=await desk.all(queries.depths(queues=queues, tasks=tasks)),
        depths=await desk.all(queries.task_depths(queues=queues, tasks=tasks)),
        tallies=await desk.all(queries.stats(window=window, queues=queues, tasks=tasks)),
        telling=await desk.all(queries.progressing(queues=queues, tasks=tasks)),
    )


class QueueFilter(msgspec.Struct, frozen=True):
    """Which queue; absent: all that the token may see."""

    queue: Annotated[str, msgspec.Meta(max_length=200)] | None = None


async def scale(call: RequestContext) -> messages.Scale:
    """What an autoscaler wants to know."""
    only = None if call.query.queue is None else [str(plain(call.query.queue))]
    found = await _queues(call, only)
    names = {queue.queue for queue in found}
    workers = await call.service.desk.all(queries.workers())
    open_queues = [queue for queue in found if queue.paused_at is None]
    return messages.Scale(
        backlog=sum(queue.ready + queue.running for queue in open_queues),
        oldest_ready_s=max((queue.oldest_ready_s or 0.0 for queue in open_queues), default=0.0),
        workers=sum(
            w.alive
            and bool(w.tasks)
            and not names.isdisjoint(w.queues)
            and call.grant.serves(w.queues, w.tasks)
            for w in workers
        ),
    )


async def workers(call: RequestContext) -> messages.WorkersReply:
    """Workers that serve queues the token may see."""
    found = [
        row
        for row in await call.service.desk.all(queries.workers())
        if call.grant.sees(row.queues, row.tasks)
    ]
    return messages.WorkersReply(
        workers=[messages.WorkerView(**msgspec.structs.asdict(row)) for row in found]
    )


# -- The service itself ----------------------------------------------------------------------------


async def whoami(call: RequestContext) -> messages.Whoami:
    """What the token may do."""
    token = call.grant.token
    return messages.Whoami(
        name=token.name,
        role=token.role,
        queues=token.queues,
        tasks=token.tasks,
        expires_at=token.expires_at,
    )


async def readyz(call: RequestContext) -> messages.Health:
    """Whether requests that need the database would be done."""
    if call.service.stopping:
        raise Unavailable("The service is stopping.", retry_after_s=2)
    await call.service.readiness.check()
    status: Literal["ok"] = "ok"
    return messages.Health(status=status)
