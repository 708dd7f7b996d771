# SPDX-License-Identifier: MIT
"""Routes about the service itself: who the caller is, and whether the service is ready."""

from typing import Literal

from byrote.service.http.request import RequestContext
from byrote.wire import messages
from byrote.wire.problems import Unavailable


async def whoami(call: RequestContext) -> messages.Whoami:
    """The rights of the token."""
    token = call.grant.token
    return messages.Whoami(
        name=token.name,
        role=token.role,
        queues=token.queues,
        tasks=token.tasks,
        expires_at=token.expires_at,
    )


async def readyz(call: RequestContext) -> messages.Health:
    """Whether the service can process requests that need the database."""
    if call.service.stopping:
        raise Unavailable("The service is stopping.", retry_after_s=2)
    await call.service.readiness.check()
    status: Literal["ok"] = "ok"
    return messages.Health(status=status)
