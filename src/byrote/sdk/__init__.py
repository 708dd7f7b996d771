# SPDX-License-Identifier: MIT
"""The SDK of the queue service: clients that enqueue and ask, workers that execute. No database."""

from typing import TYPE_CHECKING

from byrote.exports import lazy_exports

if TYPE_CHECKING:
    from byrote.core.artifact import (
        ArtifactDamaged as ArtifactDamaged,
        UnknownArtifact as UnknownArtifact,
    )
    from byrote.core.errors import (
        ByroteError as ByroteError,
        Fatal as Fatal,
        ResultTimeout as ResultTimeout,
        RetryLater as RetryLater,
        RunFailed as RunFailed,
        ServiceUnreachable as ServiceUnreachable,
        Snooze as Snooze,
        RunNotFound as RunNotFound,
    )
    from byrote.core.policy import Retry as Retry
    from byrote.core.run import Run as Run
    from byrote.executors.runtime.context import Context as Context
    from byrote.sdk.aclient import AsyncClient as AsyncClient
    from byrote.sdk.calls.producer import new_run as new_run
    from byrote.sdk.client import Client as Client
    from byrote.sdk.handlers import Handlers as Handlers
    from byrote.sdk.traces import spans as spans
    from byrote.sdk.worker import Worker as Worker
    from byrote.wire.messages import Accepted as Accepted, NewRun as NewRun
    from byrote.wire.problems import Refused as Refused
else:
    # Imported when first used: a hand that imports handlers needs no HTTP client.
    __all__, __getattr__ = lazy_exports(
        __name__,
        {
            "byrote.core.artifact": "ArtifactDamaged UnknownArtifact",
            "byrote.core.errors": (
                "ByroteError Fatal ResultTimeout RetryLater "
                "RunFailed ServiceUnreachable Snooze RunNotFound"
            ),
            "byrote.core.policy": "Retry",
            "byrote.core.run": "Run",
            "byrote.executors.runtime.context": "Context",
            "byrote.sdk.aclient": "AsyncClient",
            "byrote.sdk.calls.producer": "new_run",
            "byrote.sdk.client": "Client",
            "byrote.sdk.handlers": "Handlers",
            "byrote.sdk.traces": "spans",
            "byrote.sdk.worker": "Worker",
            "byrote.wire.messages": "Accepted NewRun",
            "byrote.wire.problems": "Refused",
        },
    )
