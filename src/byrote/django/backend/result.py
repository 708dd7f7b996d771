# SPDX-License-Identifier: MIT
"""A stored run as Django's TaskResult."""

from dataclasses import dataclass, field
from typing import Any

from byrote.core.run import Run
from byrote.core.state import Status
from byrote.django import compat
from byrote.django.backend.task import restored
from byrote.django.errors import CANCELLED, error_of

STATUSES = {
    Status.WAITING: compat.TaskResultStatus.READY,
    Status.READY: compat.TaskResultStatus.READY,
    Status.RUNNING: compat.TaskResultStatus.RUNNING,
    Status.SUCCESSFUL: compat.TaskResultStatus.SUCCESSFUL,
    Status.FAILED: compat.TaskResultStatus.FAILED,
    # Django has no status for cancelled tasks; their last error is `TaskCancelled`.
    Status.CANCELLED: compat.TaskResultStatus.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult(compat.TaskResult):
    """Django's result with the run as Byrote has stored it."""

    run: Run | None = None
    """The stored run when this result was read; None right after enqueueing."""
    created: bool = field(default=False, compare=False)
    """Whether the call that returned this enqueued the run; False if another had its unique key."""

    def refresh(self) -> None:
        """Read the result again."""
        self._take(self.task.get_backend().get_result(self.id))

    async def arefresh(self) -> None:
        """Read the result again."""
        self._take(await self.task.get_backend().aget_result(self.id))

    def _take(self, fresh: Any) -> None:
        for name in (*compat.TASK_REFRESH_ATTRS, "run"):
            object.__setattr__(self, name, getattr(fresh, name))


def new_result(task: Any, alias: str, run_id: str, spec: dict[str, Any]) -> TaskResult:
    """The result of a task that is about to be enqueued."""
    return TaskResult(
        task=task,
        id=run_id,
        status=compat.TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=spec["args"],
        kwargs=spec["kwargs"],
        backend=alias,
        errors=[],
        worker_ids=[],
        created=True,
    )


def result_of(run: Run, definition: Any, alias: str) -> TaskResult:
    """A stored run of a task, as Django shows it."""
    deferred = run.run_after > run.enqueued_at
    task = restored(
        definition,
        backend=alias,
        queue_name=run.queue,
        priority=run.priority,
        run_after=run.run_after if deferred else None,
    )
    result = TaskResult(
        task=task,
        id=run.id,
        status=STATUSES[run.status],
        enqueued_at=run.enqueued_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        last_attempted_at=run.last_attempted_at,
        args=run.args,
        kwargs=run.kwargs,
        backend=alias,
        errors=[error_of(fault) for fault in run.faults],
        worker_ids=list(run.worker_ids),
        run=run,
    )
    if run.status is Status.CANCELLED:
        result.errors.append(CANCELLED)
    object.__setattr__(result, "_return_value", run.result)
    return result
