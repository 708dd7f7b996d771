# SPDX-License-Identifier: MIT
"""Long-poll route that notifies a worker when one of its runs was cancelled."""

from typing import Annotated

import msgspec

from byrote.service.http.request import RequestContext
from byrote.service.routes.runs import wait_of
from byrote.service.routes.workers import is_foreign
from byrote.wire.leases import CancellationHint


class CancellationQuery(msgspec.Struct, frozen=True):
    """How long to wait for a cancellation."""

    wait: Annotated[str, msgspec.Meta(max_length=40, description="As in `20s`.")] = "0s"


async def wait_for_cancellation(call: RequestContext) -> CancellationHint:
    """Wait until a run of this worker is cancelled; the next renewal names the run."""
    calling, holder = call.service.calling, call.grant.token.holder
    seconds = min(wait_of(call.query.wait), call.service.options.wait_max_s)
    foreign = await is_foreign(call)
    with call.waits():
        worker = None if foreign else call.path["worker"]
        cancelled = await calling.wait(worker, holder, seconds, call.gone)
    await call.confirm()
    return CancellationHint(called=cancelled)
