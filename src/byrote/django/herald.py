# SPDX-License-Identifier: MIT
"""Django's signals of the worker: who is told that a task starts, and how it finished.

`task_started` is sent before the function is called. `task_finished` is sent when the outcome is
stored, by a thread that waits for the supervisor's word; if this process does not know the run
(another took it down), its result is read from the database. Receivers cannot change what happened:
what they raise is logged.

Most projects have no receivers but Django's own, which write log lines. Then a result is put
together here; only for others, for tasks that take a context and for later attempts is it read.
"""

import logging
import os
import queue
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Never

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from byrote.core.errors import Snooze
from byrote.django import compat
from byrote.django.backend import Backend
from byrote.django.definition import restored
from byrote.django.errors import error_of
from byrote.django.result import TaskResult
from byrote.executors.board import SLOTS
from byrote.executors.call import fault_of
from byrote.executors.child import WORKER
from byrote.executors.context import Context

BACKLOG_MAX = 10_000
"""Finished tasks whose receivers are still to be called, at most."""
ENDED_MAX = 2 * SLOTS
"""Attempts whose verdicts are on their way; those whose lease was lost are never heard of."""
OUT_OF_REACH = "2s"
"""How long a run steps aside, uncharged, when it cannot be read before it begins."""
FAREWELL_S = 10.0
FINAL = frozenset("SFC")

_log = logging.getLogger("byrote.django")


class Ended(NamedTuple):
    """An attempt that has ended here, and with what exception."""

    result: TaskResult
    error: BaseException | None


class Herald:
    """Sends the signals of one backend from one process."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._ended: dict[str, Ended] = {}
        self._told: queue.Queue[tuple[str, str] | None] = queue.Queue(BACKLOG_MAX)
        self._thread: threading.Thread | None = None

    @property
    def watched(self) -> bool:
        """Whether anybody but Django's own log lines listens."""
        return len(compat.task_started.receivers) + len(compat.task_finished.receivers) > 2

    # -- Begin -----------------------------------------------------------------------------------

    def begin(
        self, definition: Any, ctx: Context, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> TaskResult:
        """The result of an attempt that begins."""
        if definition.takes_context or ctx.attempt > 1 or self.watched:
            return self._read(ctx)
        return self._made(definition, ctx, args, kwargs)

    async def abegin(
        self, definition: Any, ctx: Context, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> TaskResult:
        """The result of an attempt that begins, read in the attempt's own thread if need be."""
        if definition.takes_context or ctx.attempt > 1 or self.watched:
            return await sync_to_async(self._read)(ctx)
        return self._made(definition, ctx, args, kwargs)

    def _read(self, ctx: Context) -> TaskResult:
        try:
            return self.backend.get_result(ctx.run_id)
        except (InterfaceError, OperationalError):
            # Not the task's fault, and it has not begun.
            raise Snooze(OUT_OF_REACH) from None

    def _made(
        self, definition: Any, ctx: Context, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> TaskResult:
        now = timezone.now()
        return TaskResult(
            task=restored(definition, backend=self.backend.alias, queue_name=ctx.queue),
            id=ctx.run_id,
            status=compat.TaskResultStatus.RUNNING,
            enqueued_at=ctx.now() if settings.USE_TZ else timezone.make_naive(ctx.now()),
            started_at=now,
            finished_at=None,
            last_attempted_at=now,
            args=list(args),
            kwargs=kwargs,
            backend=self.backend.alias,
            errors=[],
            worker_ids=[os.environ.get(WORKER, "")],
        )

    def started(self, result: TaskResult) -> None:
        """Tell receivers that the task starts."""
        compat.task_started.send_robust(type(self.backend), task_result=result)

    async def astarted(self, result: TaskResult) -> None:
        """Tell receivers that the task starts, those that are not async in the task's thread."""
        if self.watched:
            await compat.task_started.asend_robust(type(self.backend), task_result=result)
        else:
            self.started(result)

    # -- End -------------------------------------------------------------------------------------

    def returned(self, result: TaskResult) -> None:
        """Remember a result until it is stored; whoever wants its value will read it then."""
        object.__setattr__(result, "status", compat.TaskResultStatus.SUCCESSFUL)
        self._keep(result, None)

    def raised(self, result: TaskResult, error: BaseException) -> None:
        """Remember an error until it is stored."""
        result.errors.append(error_of(fault_of(error)))
        object.__setattr__(result, "status", compat.TaskResultStatus.FAILED)
        self._keep(result, error)

    def _keep(self, result: TaskResult, error: BaseException | None) -> None:
        object.__setattr__(result, "finished_at", timezone.now())
        self._ended[result.id] = Ended(result, error)
        if len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]

    def forget(self, run_id: str) -> None:
        """Forget how an attempt ended here: what is stored of it is something else."""
        self._ended.pop(run_id, None)

    # -- Settled ---------------------------------------------------------------------------------

    def settled(self, told: Sequence[tuple[str, str | None]]) -> None:
        """Hear how attempts were stored; never waits."""
        for run_id, verdict in told:
            if verdict not in FINAL:
                self.forget(run_id)
                continue
            try:
                self._told.put_nowait((run_id, verdict or ""))
            except queue.Full:
                self.forget(run_id)
                _log.warning("task_finished of %s was not sent: receivers are too slow", run_id)
        if told and self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="byrote-herald", daemon=True)
            self._thread.start()

    def farewell(self) -> None:
        """Send what is left, as long as that takes no more than a few seconds."""
        if self._thread is not None:
            self._told.put(None)
            self._thread.join(FAREWELL_S)

    def _serve(self) -> None:
        while (told := self._told.get()) is not None:
            try:
                self.finish(*told)
            except Exception:  # noqa: BLE001 -- the next one is still to be told.
                _log.exception("task_finished of %s was not sent", told[0])
            close_old_connections()

    def finish(self, run_id: str, verdict: str) -> None:
        """Tell receivers how a task finished, now that it is stored."""
        ended = self._ended.pop(run_id, None)
        if ended is None or self.watched or verdict == "C":
            error = None if ended is None else ended.error
            ended = Ended(self.backend.get_result(run_id), error)
        sender = type(self.backend)
        if ended.error is None or verdict != "F":
            compat.task_finished.send_robust(sender, task_result=ended.result)
            return
        try:
            _raise(ended.error)
        except BaseException:  # noqa: BLE001 -- Django's log line takes its traceback from here.
            compat.task_finished.send_robust(sender, task_result=ended.result)


def _raise(error: BaseException) -> Never:
    raise error
