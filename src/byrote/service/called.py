# SPDX-License-Identifier: MIT
"""The route by which a worker hears at once that a run of its is not wanted any more."""

from typing import Annotated

import msgspec

from byrote.service.call import Call
from byrote.service.leases import worker_of
from byrote.service.runs import wait_of
from byrote.wire.leases import Called
from byrote.wire.problems import Unavailable


class Patience(msgspec.Struct, frozen=True):
    """How long to wait for a call."""

    wait: Annotated[str, msgspec.Meta(max_length=40, description="As in `20s`.")] = "0s"


async def called(call: Call) -> Called:
    """Wait until a run of this worker is not wanted any more; the next renewal says which."""
    worker, calling = await worker_of(call), call.service.calling
    if calling.waiting >= call.service.options.waiting:
        raise Unavailable("Too many workers wait here already.", retry_after_s=5)
    seconds = min(wait_of(call.query.wait), call.service.options.wait_max_s)
    return Called(called=await calling.wait(worker, seconds, call.gone))
