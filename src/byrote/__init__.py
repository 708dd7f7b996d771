# SPDX-License-Identifier: MIT
"""Byrote: a task queue and worker on PostgreSQL that runs tasks by rote and can prove it."""

from typing import TYPE_CHECKING

from byrote.exports import lazy_exports

if TYPE_CHECKING:
    from byrote.artifacts.artifact import Artifact as Artifact
    from byrote.assembly.app import App as App, LargePayload as LargePayload
    from byrote.assembly.handles import RunHandle as RunHandle, TaskHandle as TaskHandle
    from byrote.core.command import Command as Command, Container as Container, Limits as Limits
    from byrote.core.errors import (
        ByroteError as ByroteError,
        Fatal as Fatal,
        LeaseLost as LeaseLost,
        NonDeterminism as NonDeterminism,
        ResultTimeout as ResultTimeout,
        RetryLater as RetryLater,
        RunFailed as RunFailed,
        RunNotFound as RunNotFound,
        Snooze as Snooze,
        StepFailed as StepFailed,
        WaitTimeout as WaitTimeout,
    )
    from byrote.assembly.tasks.group import TaskGroup as TaskGroup
    from byrote.core.ports.hooks import EndedRun as EndedRun
    from byrote.core.policy import Retry as Retry
    from byrote.core.replay.verdict import (
        Differs as Differs,
        NotReplayable as NotReplayable,
        Same as Same,
    )
    from byrote.core.run import Run as Run
    from byrote.core.spec import Spec as Spec
    from byrote.core.state import Status as Status
    from byrote.executors.hooks.registered import FailedAttempt as FailedAttempt
    from byrote.executors.runtime.context import Context as Context
else:
    # Fetched when first used: `byrote --version` must not wait for a database driver.
    __all__, __getattr__ = lazy_exports(
        __name__,
        {
            "byrote.artifacts.artifact": "Artifact",
            "byrote.assembly.app": "App LargePayload",
            "byrote.assembly.handles": "RunHandle TaskHandle",
            "byrote.core.command": "Command Container Limits",
            "byrote.core.errors": (
                "ByroteError Fatal LeaseLost NonDeterminism "
                "ResultTimeout RetryLater RunFailed RunNotFound Snooze StepFailed WaitTimeout"
            ),
            "byrote.assembly.tasks.group": "TaskGroup",
            "byrote.core.ports.hooks": "EndedRun",
            "byrote.core.policy": "Retry",
            "byrote.core.replay.verdict": "Differs NotReplayable Same",
            "byrote.core.run": "Run",
            "byrote.core.spec": "Spec",
            "byrote.core.state": "Status",
            "byrote.executors.hooks.registered": "FailedAttempt",
            "byrote.executors.runtime.context": "Context",
        },
    )
