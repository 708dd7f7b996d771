# SPDX-License-Identifier: MIT
"""Sends Django's signals `task_started` and `task_finished` from a hand.

`task_started` is sent before the function is called. `task_finished` is sent after the outcome is
stored, by a thread that waits for the supervisor's message; if this process does not know the run
(its attempt crashed another hand), the result is read from the database. Receivers cannot change
the outcome: their exceptions are logged.

Most projects have only Django's own receivers, which write log lines. Then the result is built
here; it is read from the database only for other receivers, for tasks that take a context, and for
later attempts.
"""

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple, Never

import msgspec
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone

from byrote.core.errors import Snooze
from byrote.core.policy import Cancel, Fail, Succeed
from byrote.core.verdict import LETTERS
from byrote.django import compat
from byrote.django.backend.backend import Backend
from byrote.django.backend.policy import has_wait
from byrote.django.backend.result import TaskResult
from byrote.django.backend.task import restored
from byrote.django.backport import send, twin_of
from byrote.django.errors import error_of, exception_of
from byrote.django.worker.sessions import drop, tidy
from byrote.executors.hands.process import WORKER
from byrote.executors.runtime.call import fault_of, theirs
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.output import open_scope, reset_scope
from byrote.executors.shared.board import SLOTS

BACKLOG_MAX = 10_000
"""Maximum number of finished tasks whose receivers are still to be called."""
ENDED_MAX = 2 * SLOTS
"""Maximum number of attempts that await their verdict; for a lost lease none ever arrives."""
OUT_OF_REACH = "2s"
"""How long a run waits, uncharged, if its row cannot be read before the attempt."""
FLUSH_S = 10.0
FINAL = frozenset(LETTERS[verdict] for verdict in (Succeed, Fail, Cancel))
"""Letters of the verdicts that end a run."""
STATUSES = {"S": compat.TaskResultStatus.SUCCESSFUL, "F": compat.TaskResultStatus.FAILED}
"""Django's status by verdict; a cancelled run is FAILED for Django, with error `TaskCancelled`."""
LOG_RECEIVERS = frozenset({id(compat.log_task_started), id(compat.log_task_finished)})
"""Lookup ids of Django's own receivers."""
SIGNALS = (compat.task_started, compat.task_finished)
READ_TRIES = 5
READ_PAUSE_S = 1.0

_log = logging.getLogger("byrote.django")


class EndedAttempt(NamedTuple):
    """The result of an attempt that ended in this process, and its exception, if any."""

    result: TaskResult
    error: BaseException | None


class TaskSignals:
    """Sends the signals of one backend from one process.

    With `borrowed`, the connections belong to a test and are never closed here.
    """

    def __init__(self, backend: Backend, *, borrowed: bool = False) -> None:
        self.backend = backend
        self._borrowed = borrowed
        self._ended: dict[str, EndedAttempt] = {}
        self._finished: queue.Queue[tuple[str, str] | None] = queue.Queue(BACKLOG_MAX)
        self._thread: threading.Thread | None = None
        self._books: ThreadPoolExecutor | None = None
        """One thread with its own connection, for queries of async attempts."""

    @property
    def watched(self) -> bool:
        """Whether a signal has receivers besides those that write Django's own log lines."""
        return any(
            entry[0][0] not in LOG_RECEIVERS for signal in SIGNALS for entry in signal.receivers
        ) or any(twin_of(signal) is not None for signal in SIGNALS)

    # -- Begin -----------------------------------------------------------------------------------

    def begin(
        self, definition: Any, ctx: Context, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> TaskResult:
        """Return the result of an attempt that begins."""
        if self._reads(definition, ctx):
            return self._read(ctx)
        return self._made(definition, ctx, args, kwargs)

    async def abegin(
        self, definition: Any, ctx: Context, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> TaskResult:
        """As `begin` and `started`, for an async task: blocking work runs in a separate thread.

        The threads of async tasks are few, and a task that needs none must not wait for one.
        """
        reads = self._reads(definition, ctx)
        if not self._borrowed and (reads or self.watched):
            return await self._in_books(self._begin_and_start, definition, ctx, args, kwargs)
        if not reads:
            result = self._made(definition, ctx, args, kwargs)
        else:
            result = await sync_to_async(self._read)(ctx)
        if not ctx.replaying:
            await self.astarted(result)
        return result

    def _begin_and_start(
        self, definition: Any, ctx: Context, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> TaskResult:
        result = self.begin(definition, ctx, args, kwargs)
        if not ctx.replaying:
            watched = self.watched
            self.started(result)
            if watched:
                tidy()  # Receivers may have changed the sessions.
        return result

    async def _in_books[**P, R](
        self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        if self._books is None:
            self._books = ThreadPoolExecutor(1, "byrote-books")
        call = partial(copy_context().run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._books, call)

    def _reads(self, definition: Any, ctx: Context) -> bool:
        """Whether the project's code may read the result, which must then be the stored one."""
        if definition.takes_context or ctx.attempt > 1 or self.watched:
            return True
        return has_wait(definition, self.backend.settings, ctx.labels)

    def _read(self, ctx: Context) -> TaskResult:
        try:
            return self.backend.get_result(ctx.run_id)
        except (InterfaceError, OperationalError):
            self._reconnect()  # A new session may succeed where an old one did not.
        try:
            return self.backend.get_result(ctx.run_id)
        except (InterfaceError, OperationalError) as error:
            _log.warning(
                "Run %s of %s waits %s, uncharged: its row cannot be read before it begins: %s",
                *(ctx.run_id, ctx.task, OUT_OF_REACH, error),
            )
            # Uncharged: the task has not started.
            raise Snooze(OUT_OF_REACH) from None

    def _reconnect(self) -> None:
        if not self._borrowed:
            drop(connections[self.backend.database])

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
        """Send `task_started`; output of receivers is not captured as the task's output."""
        outside = open_scope(None)
        try:
            send(compat.task_started, type(self.backend), result)
        finally:
            reset_scope(outside)

    async def astarted(self, result: TaskResult) -> None:
        """Send `task_started`; sync receivers run in the task's thread."""
        if self.watched:
            await compat.task_started.asend_robust(type(self.backend), task_result=result)
        else:
            self.started(result)

    # -- End -------------------------------------------------------------------------------------

    def returned(self, result: TaskResult) -> None:
        """Keep a result until its outcome is stored; receivers that need its value read it then."""
        object.__setattr__(result, "status", compat.TaskResultStatus.SUCCESSFUL)
        self._keep(result, None)

    def raised(self, result: TaskResult, error: BaseException) -> None:
        """Keep an error until the outcome is stored."""
        result.errors.append(error_of(msgspec.to_builtins(fault_of(error))))
        object.__setattr__(result, "status", compat.TaskResultStatus.FAILED)
        self._keep(result, error)

    def _keep(self, result: TaskResult, error: BaseException | None) -> None:
        object.__setattr__(result, "finished_at", timezone.now())
        self._ended[result.id] = EndedAttempt(result, error)
        if len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]

    def forget(self, run_id: str) -> None:
        """Discard the result of an attempt whose stored outcome is another."""
        self._ended.pop(run_id, None)

    # -- Finished --------------------------------------------------------------------------------

    def on_finished(self, finished: Sequence[tuple[str, str | None]]) -> None:
        """Queue `task_finished` for stored outcomes `(run id, verdict)`; never waits."""
        for run_id, verdict in finished:
            if verdict not in FINAL:
                self.forget(run_id)
                continue
            try:
                self._finished.put_nowait((run_id, verdict or ""))
            except queue.Full:
                self.forget(run_id)
                _log.warning("task_finished of %s was not sent: receivers are too slow", run_id)
        if finished and self._thread is None:
            self._thread = threading.Thread(
                target=self._serve, name="byrote-task-signals", daemon=True
            )
            self._thread.start()

    def flush(self) -> None:
        """Send the queued signals; stops waiting after `FLUSH_S` seconds."""
        if self._thread is not None:
            self._finished.put(None)
            self._thread.join(FLUSH_S)

    def _serve(self) -> None:
        while (finished := self._finished.get()) is not None:
            try:
                self.finish(*finished)
            except Exception:  # noqa: BLE001 -- the other signals must still be sent.
                _log.exception("task_finished of %s was not sent", finished[0])
            tidy()

    def finish(self, run_id: str, verdict: str) -> None:
        """Send `task_finished` for a stored outcome."""
        ended = self._ended.pop(run_id, None)
        if ended is None or self.watched or ended.result.status != STATUSES.get(verdict):
            ended = self._stored(run_id, ended)
        sender = type(self.backend)
        if ended.error is None or verdict != "F":
            send(compat.task_finished, sender, ended.result)
            return
        trace = ended.error.__traceback__
        try:
            _raise(ended.error)
        except BaseException as error:  # noqa: BLE001 -- Django logs the exception being handled.
            error.__traceback__ = theirs(trace)
            send(compat.task_finished, sender, ended.result)

    def _stored(self, run_id: str, ended: EndedAttempt | None) -> EndedAttempt:
        """The stored result, with the exception raised here or one for the stored fault.

        A value may have been refused after the task had returned it; an attempt may have ended in
        another process.
        """
        result = self._get_result(run_id)
        if ended is not None and ended.error is not None:
            return EndedAttempt(result, ended.error)
        faults = [] if result.run is None else result.run.faults
        return EndedAttempt(result, exception_of(faults[-1]) if faults else None)

    def _get_result(self, run_id: str) -> TaskResult:
        for _ in range(READ_TRIES - 1):
            try:
                return self.backend.get_result(run_id)
            except (InterfaceError, OperationalError) as error:
                _log.warning("The outcome of %s cannot be read yet: %s", run_id, error)
                self._reconnect()
                time.sleep(READ_PAUSE_S)
        return self.backend.get_result(run_id)


def _raise(error: BaseException) -> Never:
    raise error
