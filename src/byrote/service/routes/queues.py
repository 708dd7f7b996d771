# SPDX-License-Identifier: MIT
"""Routes of queues: list, pause, resume, settings, and the figures an autoscaler needs."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

import msgspec

from byrote.core.spec import check_name
from byrote.core.unserved import patience
from byrote.service.http.decoding import plain
from byrote.service.http.request import RequestContext, known_queue
from byrote.service.views import queue_view
from byrote.store import queries
from byrote.store.queries.queues import set_unserved, unserved_tasks
from byrote.store.queries.retention import read_retention
from byrote.wire import bulk, messages


async def queues(call: RequestContext) -> messages.QueuesReply:
    """Every queue the token may see, with its counts of runs."""
    return messages.QueuesReply(queues=await _queues(call), count_max=queries.DEPTH_MAX)


async def _queues(
    call: RequestContext, only: Sequence[str] | None = None
) -> list[messages.QueueView]:
    allowed = call.grant.queues
    if only is not None:
        allowed = [name for name in only if allowed is None or name in allowed]
    found = await call.service.reads.all(queries.depths(queues=allowed, tasks=call.grant.tasks))
    strange: dict[str, list[str]] = defaultdict(list)
    for one in await call.service.reads.all(unserved_tasks()):
        if call.grant.tasks is None or one.task in call.grant.tasks:
            strange[one.queue].append(one.key)
    return [queue_view(row, strange[row.queue]) for row in found]


async def pause(call: RequestContext) -> messages.QueueState:
    """Stop claims from a queue; running attempts continue."""
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


async def set_retention(call: RequestContext) -> bulk.QueueKeeps:
    """Set how long a queue keeps ended runs and dead letters; an absent setting stays."""
    asked: bulk.SetRetention = call.body
    kept = read_retention(asked.keep_done, asked.keep_dead)
    name = await known_queue(call)
    [found] = await call.change(
        queries.set_retention([name], **kept),
        "set_retention",
        lambda rows: [row.queue for row in rows if row.changed],
        subject=name,
    )
    done, dead = found.keep_done.total_seconds(), found.keep_dead.total_seconds()
    return bulk.QueueKeeps(queue=name, keep_done_s=done, keep_dead_s=dead)


class QueueQuery(msgspec.Struct, frozen=True):
    """The queue; absent: all that the token may see."""

    queue: Annotated[str, msgspec.Meta(max_length=200)] | None = None


async def scale(call: RequestContext) -> messages.Scale:
    """The figures for an autoscaler."""
    only = None if call.query.queue is None else [str(plain(call.query.queue))]
    found = await _queues(call, only)
    names = {queue.queue for queue in found}
    workers = await call.service.reads.all(queries.workers())
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
