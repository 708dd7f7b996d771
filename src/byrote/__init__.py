# SPDX-License-Identifier: MIT
"""Byrote: a task queue and worker on PostgreSQL that runs tasks by rote and can prove it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byrote.artifacts.artifact import Artifact
    from byrote.assembly.app import App, LargePayload
    from byrote.assembly.handles import RunHandle, TaskHandle
    from byrote.core.command import Command, Container, Limits
    from byrote.core.errors import (
        ByroteError,
        Fatal,
        LeaseGone,
        NonDeterminism,
        ResultTimeout,
        RetryLater,
        RunFailed,
        Snooze,
        WaitTimeout,
    )
    from byrote.core.policy import Retry
    from byrote.core.replay.verdict import Differs, NotReplayable, Same
    from byrote.core.run import Run
    from byrote.core.spec import Spec
    from byrote.core.state import Status
    from byrote.executors.runtime.context import Context

__all__ = [
    "App",
    "Artifact",
    "ByroteError",
    "Command",
    "Container",
    "Context",
    "Differs",
    "Fatal",
    "LargePayload",
    "LeaseGone",
    "Limits",
    "NonDeterminism",
    "NotReplayable",
    "ResultTimeout",
    "Retry",
    "RetryLater",
    "Run",
    "RunFailed",
    "RunHandle",
    "Same",
    "Snooze",
    "Spec",
    "Status",
    "TaskHandle",
    "WaitTimeout",
]

_HOME = {
    "App": "byrote.assembly.app",
    "Artifact": "byrote.artifacts.artifact",
    "ByroteError": "byrote.core.errors",
    "Command": "byrote.core.command",
    "Container": "byrote.core.command",
    "Context": "byrote.executors.runtime.context",
    "Differs": "byrote.core.replay.verdict",
    "Fatal": "byrote.core.errors",
    "LargePayload": "byrote.assembly.app",
    "LeaseGone": "byrote.core.errors",
    "Limits": "byrote.core.command",
    "NonDeterminism": "byrote.core.errors",
    "NotReplayable": "byrote.core.replay.verdict",
    "ResultTimeout": "byrote.core.errors",
    "Retry": "byrote.core.policy",
    "RetryLater": "byrote.core.errors",
    "Run": "byrote.core.run",
    "RunFailed": "byrote.core.errors",
    "RunHandle": "byrote.assembly.handles",
    "Same": "byrote.core.replay.verdict",
    "Snooze": "byrote.core.errors",
    "Spec": "byrote.core.spec",
    "Status": "byrote.core.state",
    "TaskHandle": "byrote.assembly.handles",
    "WaitTimeout": "byrote.core.errors",
}


def __getattr__(name: str) -> Any:
    # Names are fetched when first asked for: `byrote --version` must not wait for a database
    # driver.
    if name not in _HOME:
        raise AttributeError(f"module 'byrote' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        from byrote.core.errors import missing_driver  # noqa: PLC0415 -- only when it fails.

        raise missing_driver(f"byrote.{name}", error) from None
