# SPDX-License-Identifier: MIT
"""Executes jobs in one process: async tasks many at a time on a loop, sync ones in threads.

The loop's thread owns everything but the sync threads' work. Results collect in a deque and leave
in whatever batch has formed by the time the loop comes round: one at idle, hundreds under load. A
thread that adds a result wakes the loop only if nobody has since it last slept.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from queue import SimpleQueue
from typing import Any, NoReturn

from byrote.core.task import Registry
from byrote.executors import call, meter
from byrote.executors.board import Board
from byrote.executors.call import Job, Result
from byrote.executors.desk import Desk
from byrote.executors.output import Tray, open_tray

FLUSH = 100
"""Results that leave at once, without waiting for the loop to come round."""


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
        desk: Desk | None = None,
    ) -> None:
        self._registry = registry
        self._desk = desk
        self._async = {(task.name, task.version): task.is_async for task in registry}
        self._board = board
        self._deliver = deliver
        self._concurrency = concurrency
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Job] = deque()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._stopping: dict[int, str] = {}
        self._alarms: dict[int, asyncio.TimerHandle] = {}
        self._done: deque[Result] = deque()
        self._woken = False
        self._sync: SimpleQueue[Job | None] = SimpleQueue()
        for place in range(1, threads + 1):
            threading.Thread(
                target=self._work, args=(place,), name=f"byrote-{place}", daemon=True
            ).start()
        self.threads = threads

    def put(self, jobs: Sequence[Job]) -> None:
        """Take jobs in; on the loop's thread."""
        for job in jobs:
            if self._async.get((job[2], job[3]), False):
                self._waiting.append(job)
            else:
                self._sync.put(job)
        self._begin()

    def cancel(self, slots: Sequence[int]) -> None:
        """Ask attempts of async tasks to stop; sync ones cannot be asked."""
        for slot in slots:
            task = self._running.get(slot)
            if task is not None:
                self._stopping[slot] = "cancel"
                task.cancel()

    def _begin(self) -> None:
        while self._waiting and len(self._running) < self._concurrency:
            job = self._waiting.popleft()
            slot = job[0]
            if not self._board.begin(slot, 0, job[10]):
                self._done.append([slot, call.DECLINED])
                continue
            limit_ms = job[6]
            strikes_at = None if limit_ms is None else self._loop.time() + limit_ms / 1000
            attempt = _Attempt(self, self._board, job)
            task = asyncio.Task(attempt, loop=self._loop, eager_start=True)
            if len(self._done) >= FLUSH:
                # Tasks that never wait would keep the loop until the last of them was done.
                self._flush()
            if not task.done():
                self._running[slot] = task
                if strikes_at is not None:
                    self._alarms[slot] = self._loop.call_at(strikes_at, self._strike, slot)
        self._flush_soon()

    def start(self, job: Job) -> Coroutine[Any, Any, Result]:
        """An attempt of an async task, not begun yet."""
        return call.call_async(self._registry, job, self._desk)

    def stopped(self, job: Job, error: asyncio.CancelledError) -> Result:
        """What became of an attempt that was cancelled, by us or by itself."""
        match self._stopping.get(job[0]):
            case "timeout":
                return call.timed_out(job[0], job[6])
            case "cancel":
                return [job[0], call.CANCELLED]
            case _:
                # Nobody here asked for it: the task cancelled itself, which is a failure like any
                # other.
                return call.raised(job[0], error)

    def end(self, slot: int, result: Result) -> None:
        """Take the result of an attempt of an async task."""
        self._done.append(result)
        if self._running.pop(slot, None) is None:
            return  # It never waited: whoever began it goes on.
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

    def _work(self, place: int) -> None:
        board, done, registry, get = self._board, self._done, self._registry, self._sync.get
        desk = self._desk
        while (job := get()) is not None:
            if board.begin(job[0], place, job[10]):
                tray = Tray(job)
                open_tray(tray)
                done.append(tray.close_with(call.call_sync(registry, job, desk)))
                board.leave(place)
            else:
                done.append([job[0], call.DECLINED])
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
        results = []
        while self._done:
            results.append(self._done.popleft())
        if results:
            self._deliver(results)

    def close(self) -> None:
        """Let idle threads end."""
        for _ in range(self.threads):
            self._sync.put(None)


class _Attempt(Coroutine[Any, Any, None]):
    """An attempt of an async task, as the loop's tasks drive it.

    Keeps the board telling whose code the loop is running, and measures. By hand, step by step:
    coroutines around the task's own cost more than a small task does.
    """

    __slots__ = ("_begun", "_board", "_coroutine", "_cpu_ns", "_engine", "_job", "_tray")

    def __init__(self, engine: Engine, board: Board, job: Job) -> None:
        self._engine = engine
        self._board = board
        self._job = job
        self._tray = Tray(job)
        self._coroutine = engine.start(job)
        self._begun: tuple[int, int] | None = None
        self._cpu_ns = 0

    def send(self, value: Any, error: BaseException | None = None) -> Any:
        """Go on, or go on with an error; StopIteration at the end."""
        coroutine, step = self._coroutine, self._board.step
        since = meter.begin()
        if self._begun is None:
            self._begun = since
            open_tray(self._tray)
        else:
            step(self._job[0])
        try:
            waited_for = coroutine.send(value) if error is None else coroutine.throw(error)
        except StopIteration as stop:
            result = stop.value
        except asyncio.CancelledError as cancelled:
            result = self._engine.stopped(self._job, cancelled)
        else:
            self._cpu_ns += meter.of_step(since)
            return waited_for
        finally:
            step(-1)
        meter.end_steps(self._begun, since, self._cpu_ns)
        self._engine.end(self._job[0], self._tray.close_with(result))
        raise StopIteration

    def throw(self, error: Any, *_more: Any) -> Any:
        """Go on with an error: of a cancellation, or of what was waited for."""
        return self.send(None, error)

    def close(self) -> None:
        """Give up."""
        self._coroutine.close()

    def __await__(self) -> NoReturn:
        raise TypeError("An attempt is driven by a task of the loop.")

    def __getattr__(self, name: str) -> Any:
        # Whoever looks into asyncio's tasks (cr_frame, cr_await, …) sees the task's own code.
        return getattr(self._coroutine, name)
