# SPDX-License-Identifier: MIT
"""The SDK of the queue service: clients that enqueue and ask, workers that execute. No database."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byrote.core.artifact import ArtifactDamaged, UnknownArtifact
    from byrote.core.errors import (
        ByroteError,
        Fatal,
        ResultTimeout,
        RetryLater,
        RunFailed,
        ServiceUnreachable,
        Snooze,
        UnknownRun,
    )
    from byrote.core.policy import Retry
    from byrote.core.run import Run
    from byrote.executors.runtime.context import Context
    from byrote.sdk.aclient import AsyncClient
    from byrote.sdk.calls.producer import new_run
    from byrote.sdk.client import Client
    from byrote.sdk.handlers import Handlers
    from byrote.sdk.traces import spans
    from byrote.sdk.worker import Worker
    from byrote.wire.messages import Accepted, NewRun
    from byrote.wire.problems import Refused

__all__ = [
    "Accepted",
    "ArtifactDamaged",
    "AsyncClient",
    "ByroteError",
    "Client",
    "Context",
    "Fatal",
    "Handlers",
    "NewRun",
    "Refused",
    "ResultTimeout",
    "Retry",
    "RetryLater",
    "Run",
    "RunFailed",
    "ServiceUnreachable",
    "Snooze",
    "UnknownArtifact",
    "UnknownRun",
    "Worker",
    "new_run",
    "spans",
]

_HOME = {
    "Accepted": "byrote.wire.messages",
    "ArtifactDamaged": "byrote.core.artifact",
    "AsyncClient": "byrote.sdk.aclient",
    "ByroteError": "byrote.core.errors",
    "Client": "byrote.sdk.client",
    "Context": "byrote.executors.runtime.context",
    "Fatal": "byrote.core.errors",
    "Handlers": "byrote.sdk.handlers",
    "NewRun": "byrote.wire.messages",
    "Refused": "byrote.wire.problems",
    "ResultTimeout": "byrote.core.errors",
    "Retry": "byrote.core.policy",
    "RetryLater": "byrote.core.errors",
    "Run": "byrote.core.run",
    "RunFailed": "byrote.core.errors",
    "ServiceUnreachable": "byrote.core.errors",
    "Snooze": "byrote.core.errors",
    "UnknownArtifact": "byrote.core.artifact",
    "UnknownRun": "byrote.core.errors",
    "Worker": "byrote.sdk.worker",
    "new_run": "byrote.sdk.calls.producer",
    "spans": "byrote.sdk.traces",
}


def __getattr__(name: str) -> Any:
    # A hand that imports handlers needs no HTTP client.
    if name not in _HOME:
        raise AttributeError(f"module 'byrote.sdk' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
