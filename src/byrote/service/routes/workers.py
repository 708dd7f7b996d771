# SPDX-License-Identifier: MIT
"""Routes of the registry of workers.

A name belongs to the token that registered it, for as long as the worker lives; tokens that were
made of it by rotation count as the same. To any other token a name that is taken looks like one
that is not there, but for the refusal to register it.
"""

from typing import Annotated, Final

import msgspec
from msgspec import UNSET

from byrote.core.outcome import safe_text
from byrote.service.http.decoding import wait_of
from byrote.service.http.request import RequestContext
from byrote.store import queries
from byrote.wire import leases as wire
from byrote.wire import messages
from byrote.wire.problems import Conflict, Invalid

SERVICE: Final = "service-"
"""The prefix of the names of services."""
VERBS: Final = ("/cancellations", "/heartbeat")
"""Suffixes of a worker's path; no name may end in one."""


async def register(call: RequestContext) -> wire.Known:
    """Register a worker; its name belongs to the token from then on."""
    asked: wire.Register = call.body
    call.grant.check(asked.queues)
    if asked.worker.endswith(VERBS):
        raise Invalid(f"$.worker: a name does not end in {' or '.join(VERBS)}.")
    described = {
        name: safe_text(value) if isinstance(value, str) else value
        for name, value in msgspec.structs.asdict(asked).items()
    }
    query = queries.register({**described, "holder": call.grant.token.holder})
    known = await call.change(
        query, "register", lambda found: [asked.worker] * len(found), subject=asked.worker
    )
    if not known:
        raise Conflict(
            f"The name {asked.worker!r} is taken; register under another, such as one with the "
            "host and the process in it."
        )
    return wire.Known(known=True, contested=known[0] or UNSET)


async def heartbeat(call: RequestContext) -> wire.Known:
    """Store the heartbeat of a worker."""
    worker, beat = call.path["worker"], msgspec.structs.asdict(call.body)
    if not await _may(call):
        return wire.Known(known=False)
    query = queries.heartbeat(worker=worker, holder=_holder(call), **beat)
    contested = await call.service.work.first(query)
    return wire.Known(known=contested is not None, contested=contested or UNSET)


async def deregister(call: RequestContext) -> wire.Known:
    """Remove a worker that stops from the registry."""
    worker = call.path["worker"]
    if not await _may(call):
        return wire.Known(known=False)
    query = queries.deregister(worker=worker, holder=_holder(call))
    gone = await call.change(query, "deregister", lambda found: found, subject=worker)
    return wire.Known(known=bool(gone))


def _holder(call: RequestContext) -> str | None:
    """The holder whose workers a statement may change; None: any, since `_may` has checked."""
    return None if call.grant.token.role == "admin" else call.grant.token.holder


async def _may(call: RequestContext) -> bool:
    """Whether an admin may change this worker; for others, the statement checks it."""
    if _holder(call) is not None:
        return True
    found = await call.service.work.first(queries.worker_owner(call.path["worker"]))
    if found is None or found.holder == call.grant.token.holder:
        return True
    if found.holder is None and call.path["worker"].startswith(SERVICE):
        return False
    return call.grant.sees(found.queues, found.tasks)


async def is_foreign(call: RequestContext) -> bool:
    """Whether the worker named by a request was registered by another token."""
    found = await call.service.work.first(queries.worker_owner(call.path["worker"]))
    if found is None or found.holder == call.grant.token.holder:
        return False
    return call.grant.token.role != "admin" or not call.grant.sees(found.queues, found.tasks)


class CancellationQuery(msgspec.Struct, frozen=True):
    """How long to wait for a cancellation."""

    wait: Annotated[str, msgspec.Meta(max_length=40, description="As in `20s`.")] = "0s"


async def wait_for_cancellation(call: RequestContext) -> wire.CancellationHint:
    """Wait until a run of this worker is cancelled; the next renewal names the run."""
    calling, holder = call.service.calling, call.grant.token.holder
    seconds = min(wait_of(call.query.wait), call.service.options.wait_max_s)
    foreign = await is_foreign(call)
    with call.waits():
        worker = None if foreign else call.path["worker"]
        cancelled = await calling.wait(worker, holder, seconds, call.gone)
    await call.confirm()
    return wire.CancellationHint(called=cancelled)


async def workers(call: RequestContext) -> messages.WorkersReply:
    """Workers that serve queues the token may see."""
    found = [
        row
        for row in await call.service.reads.all(queries.workers())
        if call.grant.sees(row.queues, row.tasks)
    ]
    return messages.WorkersReply(
        workers=[messages.WorkerView(**msgspec.structs.asdict(row)) for row in found]
    )
