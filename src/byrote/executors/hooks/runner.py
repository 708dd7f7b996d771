# SPDX-License-Identifier: MIT
"""Calls the hooks of an app in one process: a hand, or the worker itself with `inline`.

Hooks that observe never delay an attempt or its outcome. Their reports wait in a queue that one
coroutine serves, one report after the other: it awaits async hooks on the loop of the process,
where async tasks run too, and calls the others in a thread. Errors are logged.

Start and stop hooks run on the thread of the loop, before the first and after the last task.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context as Variables
from contextvars import copy_context
from typing import Any, NamedTuple

import msgspec

from byrote.core.errors import BadOption
from byrote.core.ports.hooks import HookWants, StoredAttempt
from byrote.executors.hooks.registered import AppHooks, FailedAttempt, name_of
from byrote.executors.runtime.call import fault_of
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.failure_log import OnRaised
from byrote.executors.runtime.job import Job, RaisedResult

BACKLOG_MAX = 10_000
"""Reports that wait for hooks; later ones are dropped, with a log line."""
BATCH_MAX = 200
"""Reports whose hooks are called in one visit of the thread."""
FLUSH_S = 8.0
"""How long a process that ends waits for hooks that have reports left."""

_log = logging.getLogger("byrote.hooks")


class _Report(NamedTuple):
    """A record for the hooks of one kind, and the context variables that they see."""

    where: str
    hooks: Sequence[Callable[[Any], Any]]
    record: Any
    variables: Variables


class HookFailed(BadOption):
    """A start hook raised; the process cannot start."""

    def __init__(self, where: str, hook: Callable[..., Any], error: BaseException) -> None:
        text = f"The hook {name_of(hook)} of {where} raised {type(error).__name__}: {error}"
        super().__init__(text)
        self.traceback = fault_of(error).traceback or ""


class HookRunner:
    """The hooks of one app in one process; a replay calls only those of the hand's life."""

    def __init__(self, hooks: AppHooks, *, replaying: bool) -> None:
        self._hooks = hooks
        self._replaying = replaying
        self._loop = asyncio.get_running_loop()
        self._reports: deque[_Report] = deque()
        self._dropped = 0
        self._woken = self._closing = False
        self._news = asyncio.Event()
        self._thread: ThreadPoolExecutor | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def wants(self) -> HookWants:
        """The messages that the hooks need from the supervisor."""
        return HookWants() if self._replaying else self._hooks.wants

    # -- Start and stop --------------------------------------------------------------------------

    async def start_hand(self) -> None:
        """Call the hooks of the start of a hand; raises HookFailed."""
        await _start("on_hand_start", self._hooks.hand_start)

    async def start_worker(self) -> None:
        """Call the hooks of the start of the worker; raises HookFailed."""
        if not self._replaying:
            await _start("on_worker_start", self._hooks.worker_start)

    async def close(self, *, worker: bool) -> None:
        """Finish the reports, then call the stop hooks; of the worker too if `worker`."""
        if self._serving is not None:
            self._closing = True
            self._news.set()
            _, late = await asyncio.wait([self._serving], timeout=FLUSH_S)
            if late:
                _log.warning("%d reports to hooks were not finished", len(self._reports))
        if worker and not self._replaying:
            await _stop("on_worker_stop", self._hooks.worker_stop)
        await _stop("on_hand_stop", self._hooks.hand_stop)

    # -- Reports ---------------------------------------------------------------------------------

    @property
    def failed(self) -> OnRaised | None:
        """Takes a failed attempt for `on_failure`, from any thread; None without such hooks."""
        return self._failed if self._hooks.failure and not self._replaying else None

    def _failed(self, job: Job, result: RaisedResult, error: BaseException | None) -> None:
        fault = msgspec.structs.replace(result.fault, attempt=job.attempt)
        retried = not (result.final or job.last)
        failed = FailedAttempt(Context.of(job), error, fault, will_retry=retried)
        self._put(_Report("on_failure", self._hooks.failure, failed, copy_context()))

    def stored(self, attempts: Sequence[StoredAttempt]) -> None:
        """Take attempts whose verdicts were stored; never waits."""
        for stored in attempts:
            if stored.unseen and stored.fault is not None and self._hooks.failure:
                failed = unseen_failure(stored)
                self._put(_Report("on_failure", self._hooks.failure, failed, Variables()))
            if self._hooks.end and (ended := stored.ended) is not None:
                self._put(_Report("on_end", self._hooks.end, ended, Variables()))

    def _put(self, report: _Report) -> None:
        if len(self._reports) >= BACKLOG_MAX:
            if self._dropped % BACKLOG_MAX == 0:
                _log.warning("Reports to %s are dropped: the hooks are too slow", report.where)
            self._dropped += 1
            return
        self._reports.append(report)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._serving is None:
            self._thread = ThreadPoolExecutor(1, "byrote-hooks")
            self._serving = self._loop.create_task(self._serve(), context=Variables())
        self._news.set()

    async def _serve(self) -> None:
        while self._reports or not self._closing:
            await self._news.wait()
            self._news.clear()
            # Lowered before the reports are read: a thread that adds one later wakes us again.
            self._woken = False
            while self._reports:
                batch = [self._reports.popleft() for _ in range(min(len(self._reports), BATCH_MAX))]
                # One change of threads for many reports takes 50 µs, as it does for one.
                waiting = await self._loop.run_in_executor(self._thread, _call_all, batch)
                for variables, coroutine in waiting:
                    await self._loop.create_task(coroutine, context=variables)


def _call_all(reports: Sequence[_Report]) -> list[tuple[Variables, Coroutine[Any, Any, None]]]:
    """Call every hook of every report; returns the coroutines of async hooks, to be awaited."""
    waiting = []
    for report in reports:
        for hook in report.hooks:
            found = report.variables.run(_call, report.where, hook, report.record)
            if asyncio.iscoroutine(found):
                waiting.append((report.variables, _guarded(report.where, hook, found)))
    return waiting


def _call(where: str, hook: Callable[[Any], Any], record: Any) -> Any:
    try:
        return hook(record)
    except BaseException:  # noqa: BLE001 -- a hook that observes must not change anything.
        _log_error(where, hook)


async def _guarded(where: str, hook: Callable[..., Any], waited: Coroutine[Any, Any, None]) -> None:
    try:
        await waited
    except asyncio.CancelledError:
        raise
    except BaseException:  # noqa: BLE001 -- a hook that observes must not change anything.
        _log_error(where, hook)


def unseen_failure(stored: StoredAttempt) -> FailedAttempt:
    """The failure of an attempt whose process could not report it itself."""
    assert stored.fault is not None  # noqa: S101 -- the caller has checked it.
    job = Job(
        slot=0,
        id=stored.run_id,
        task=stored.task,
        version=stored.version,
        spec_json="",
        attempt=stored.attempt,
        timeout_ms=None,
        queue=stored.queue,
        labels_json=stored.labels_json,
        traceparent=stored.traceparent,
        deadline=0.0,
        spec_hash=b"",
        as_of_us=0,
    )
    retried = stored.verdict not in {"F", "C"}
    return FailedAttempt(Context.of(job), None, stored.fault, will_retry=retried)


async def _start(where: str, hooks: Sequence[Callable[[], Any]]) -> None:
    for hook in hooks:
        try:
            await _called(hook)
        except (Exception, SystemExit) as error:
            raise HookFailed(where, hook, error) from error


async def _stop(where: str, hooks: Sequence[Callable[[], Any]]) -> None:
    for hook in reversed(hooks):
        try:
            await _called(hook)
        except (Exception, SystemExit):  # noqa: BLE001 -- the other hooks must still be called.
            _log_error(where, hook)


async def _called(hook: Callable[[], Any]) -> None:
    found = hook()
    if asyncio.iscoroutine(found):
        await found


def _log_error(where: str, hook: Callable[..., Any]) -> None:
    _log.exception("The hook %s of %s raised; no outcome changes", name_of(hook), where)
