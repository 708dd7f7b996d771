# SPDX-License-Identifier: MIT
"""Executes jobs in one process: async tasks many at a time on a loop, sync ones in threads.

The loop's thread owns everything but the sync threads' work. Results are collected in a deque and
sent in one batch per iteration of the loop: one result when idle, hundreds under load. A thread
that adds a result wakes the loop only if no other thread has since it last slept.
"""

import asyncio
import threading
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from queue import SimpleQueue
from typing import Any

from byrote.core.task import Registry
from byrote.executors.runtime import call, usage
from byrote.executors.runtime.asks import AskClient
from byrote.executors.runtime.failure_log import OnRaised
from byrote.executors.runtime.job import (
    CancelledResult,
    DeclinedResult,
    Job,
    RaisedResult,
    Result,
)
from byrote.executors.runtime.output import AttemptScope, open_scope
from byrote.executors.runtime.steps.branches import count_branches
from byrote.executors.runtime.steps.call import current_step
from byrote.executors.shared.board import Board

FLUSH = 100
"""Results that are sent at once, without waiting for the loop's next iteration."""


class Engine:
    """Runs the tasks of one registry; results go to `deliver`, in batches, on the loop's thread."""

    def __init__(
        self,
        registry: Registry,
        board: Board,
        deliver: Callable[[list[Result]], None],
        *,
        concurrency: int,
        threads: int,
        ask_client: AskClient | None = None,
        keep: Callable[[Job, Result], None] | None = None,
        failures: OnRaised | None = None,
    ) -> None:
        self._registry = registry
        self._failures = failures
        self._keep = keep
        """Receives each result in memory that outlives this process, before any other code runs."""
        self._ask_client = ask_client
        self._async = {(task.name, task.version): task.is_async for task in registry.served}
        self._board = board
        self._deliver = deliver
        self._concurrency = concurrency
        self._loop = asyncio.get_running_loop()
        count_branches(self._loop, current_step)
        # A job has a slot until its result was received, so none of these holds more than SLOTS.
        self._waiting: deque[Job] = deque()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._stopping: dict[int, str] = {}
        self._alarms: dict[int, asyncio.TimerHandle] = {}
        self._done: deque[Result] = deque()
        self._woken = False
        self._sync: SimpleQueue[Job | None] = SimpleQueue()
        board.sit(0)
        for seat in range(1, threads + 1):
            threading.Thread(
                target=self._work, args=(seat,), name=f"byrote-{seat}", daemon=True
            ).start()
        self.threads = threads

    def put(self, jobs: Sequence[Job]) -> None:
        """Accept jobs; on the loop's thread."""
        for job in jobs:
            if self._async.get((job.task, job.version), False):
                self._waiting.append(job)
            else:
                self._sync.put(job)
        self._begin()

    def cancel(self, slots: Sequence[int]) -> None:
        """Ask attempts of async tasks to stop; sync ones cannot be cancelled."""
        for slot in slots:
            task = self._running.get(slot)
            if task is not None:
                self._stopping[slot] = "cancel"
                task.cancel()

    def limit(self, concurrency: int) -> None:
        """Execute at most this many async tasks at once from now on; on the loop's thread."""
        self._concurrency = concurrency
        self._begin()

    def _begin(self) -> None:
        waiting, running, done = self._waiting, self._running, self._done
        while waiting and len(running) < self._concurrency:
            job = waiting.popleft()
            slot = job.slot
            if not self._board.begin(slot, 0, job.deadline):
                done.append(DeclinedResult(slot))
                continue
            limit_ms = job.timeout_ms
            strikes_at = None if limit_ms is None else self._loop.time() + limit_ms / 1000
            task = asyncio.Task(self._attempt(job), loop=self._loop, eager_start=True)
            if len(done) >= FLUSH:
                # Tasks that never wait would occupy the loop until the last of them was done.
                self._flush()
            if not task.done():
                running[slot] = task
                if strikes_at is not None:
                    self._alarms[slot] = self._loop.call_at(strikes_at, self._strike, slot)
        self._flush_soon()

    async def _attempt(self, job: Job) -> None:
        """One attempt of an async task: without a break until it first waits, then step by step."""
        scope = AttemptScope(job)
        open_scope(scope)
        begun = usage.begin()
        coroutine = call.call_async(self._registry, job, self._ask_client)
        try:
            waited_for = coroutine.send(None)
        except StopIteration as stop:
            result = stop.value
            usage.end(begun)
        except asyncio.CancelledError as cancelled:
            result = self._stopped(job, cancelled)
            usage.end(begun)
        else:
            result = await self._go_on(job, coroutine, waited_for, begun)
        result = scope.close_with(result)
        if self._keep is not None:
            self._keep(job, result)
        if type(result) is RaisedResult:
            self._log_failure(job, result, scope)
        self._board.step(-1)
        self._end(job.slot, result)

    async def _go_on(
        self,
        job: Job,
        coroutine: Coroutine[Any, Any, Result],
        waited_for: Any,
        begun: tuple[int, int],
    ) -> Result:
        steps = usage.SteppedUsage(begun)
        try:
            return await self._drive(job.slot, coroutine, waited_for, steps)
        except asyncio.CancelledError as cancelled:
            return self._stopped(job, cancelled)
        finally:
            steps.end()

    @types.coroutine
    def _drive(
        self,
        slot: int,
        coroutine: Coroutine[Any, Any, Result],
        waited_for: Any,
        steps: usage.SteppedUsage,
    ) -> Generator[Any, Any, Result]:
        """Drive a coroutine; the board shows which slot's code the loop is running."""
        step = self._board.step
        while True:
            steps.pause()
            step(-1)
            value, error = None, None
            try:
                value = yield waited_for
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 -- passed on: of a cancellation, or of what was waited for.
                error = thrown
            step(slot)
            steps.resume()
            try:
                waited_for = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]

    def _stopped(self, job: Job, error: asyncio.CancelledError) -> Result:
        """The result of an attempt that was cancelled, by the engine or by itself."""
        match self._stopping.get(job.slot):
            case "timeout" if job.timeout_ms is not None:
                return call.timed_out(job.slot, job.timeout_ms)
            case "cancel":
                return CancelledResult(job.slot)
            case _:
                # The engine did not cancel it: the task cancelled itself, which is a failure like
                # any other.
                call.keep_error(error)
                return call.raised(job.slot, error)

    def _log_failure(self, job: Job, result: RaisedResult, scope: AttemptScope) -> None:
        # The scope is closed: what is logged now is not part of the task's output.
        error, scope.error = scope.error, None
        if self._failures is not None:
            self._failures(job, result, error)

    def _end(self, slot: int, result: Result) -> None:
        self._done.append(result)
        if self._running.pop(slot, None) is None:
            return  # It never waited, so `_begin` continues by itself.
        self._stopping.pop(slot, None)
        if (alarm := self._alarms.pop(slot, None)) is not None:
            alarm.cancel()
        if self._waiting:
            self._loop.call_soon(self._begin)
        self._flush_soon()

    def _strike(self, slot: int) -> None:
        task = self._running.get(slot)
        if task is not None:
            self._stopping[slot] = "timeout"
            task.cancel()

    def _work(self, seat: int) -> None:
        board, done, registry, get = self._board, self._done, self._registry, self._sync.get
        ask_client, keep = self._ask_client, self._keep
        board.sit(seat)
        while (job := get()) is not None:
            if board.begin(job.slot, seat, job.deadline):
                scope = AttemptScope(job)
                open_scope(scope)
                result = scope.close_with(call.call_sync(registry, job, ask_client))
                if keep is not None:
                    keep(job, result)
                if type(result) is RaisedResult:
                    self._log_failure(job, result, scope)
                done.append(result)
                board.leave(seat)
            else:
                done.append(DeclinedResult(job.slot))
            if not self._woken:
                self._woken = True
                self._loop.call_soon_threadsafe(self._flush)

    def _flush_soon(self) -> None:
        if self._done and not self._woken:
            self._woken = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        # Lowered before the deque is read: a thread that adds a result after the last look wakes us
        # again.
        self._woken = False
        take = self._done.popleft
        results = [take() for _ in range(len(self._done))]
        if results:
            self._deliver(results)

    def close(self) -> None:
        """Let idle threads end."""
        for _ in range(self.threads):
            self._sync.put(None)
