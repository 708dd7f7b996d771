# SPDX-License-Identifier: MIT
"""The route by which a worker hears at once that a run of its is not wanted any more."""

from typing import Annotated

import msgspec

from byrote.service.http.request import RequestContext
from byrote.service.routes.runs import wait_of
from byrote.service.routes.workers import is_foreign
from byrote.wire.leases import Called


class CancellationQuery(msgspec.Struct, frozen=True):
    """How long to wait for a call."""

    wait: Annotated[str, msgspec.Meta(max_length=40, description="As in `20s`.")] = "0s"


async def called(call: RequestContext) -> Called:
    """Wait until a run of this worker is not wanted any more; the next renewal says which."""
    calling, holder = call.service.calling, call.grant.token.holder
    seconds = min(wait_of(call.query.wait), call.service.options.wait_max_s)
    foreign = await is_foreign(call)
    with call.waits():
        worker = None if foreign else call.path["worker"]
        heard = await calling.wait(worker, holder, seconds, call.gone)
    await call.confirm()
    return Called(called=heard)
