# SPDX-License-Identifier: MIT
"""Executes jobs in one process: async tasks many at a time on a loop, sync ones in threads.

The loop's thread owns everything but the sync threads' work. Results collect in a deque and leave
in whatever batch has formed by the time the loop comes round: one at idle, hundreds under load. A
thread that adds a result wakes the loop only if nobody has since it last slept.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from queue import SimpleQueue
from typing import Any

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
        self._async = {task.key: task.is_async for task in registry}
        self._board = board
        self._deliver = deliver
        self._concurrency = concurrency
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Job] = deque()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._stopping: dict[int, str] = {}
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
            if self._async.get(f"{job[2]}@{job[3]}", False):
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
            task = asyncio.Task(self._attempt(job), loop=self._loop, eager_start=True)
            self._board.step(-1)
            if len(self._done) >= FLUSH:
                # Tasks that never wait would keep the loop until the last of them was done.
                self._flush()
            if not task.done():
                self._running[slot] = task
                task.add_done_callback(self._forget)
        self._flush_soon()

    async def _attempt(self, job: Job) -> None:
        slot = job[0]
        alarm = None
        tray = Tray(job)
        open_tray(tray)
        if job[6] is not None:
            alarm = self._loop.call_later(job[6] / 1000, self._strike, slot)
        coroutine = call.call_async(self._registry, job, self._desk)
        try:
            result = await _Stepped(coroutine, self._board, slot)
        except asyncio.CancelledError as error:
            match self._stopping.get(slot):
                case "timeout":
                    result = call.timed_out(slot, job[6])
                case "cancel":
                    result = [slot, call.CANCELLED]
                case _:
                    # Nobody here asked for it: the task cancelled itself, which is a failure like
                    # any other.
                    result = call.raised(slot, error)
        if alarm is not None:
            alarm.cancel()
        self._stopping.pop(slot, None)
        self._running.pop(slot, None)
        self._done.append(tray.close_with(result))
        self._flush_soon()

    def _strike(self, slot: int) -> None:
        task = self._running.get(slot)
        if task is not None:
            self._stopping[slot] = "timeout"
            task.cancel()

    def _forget(self, _task: asyncio.Task[None]) -> None:
        if self._waiting:
            self._begin()

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


class _Stepped:
    """Awaits a coroutine, keeps the board telling whose code the loop is running, and measures."""

    __slots__ = ("_board", "_coroutine", "_slot")

    def __init__(self, coroutine: Coroutine[Any, Any, Result], board: Board, slot: int) -> None:
        self._coroutine = coroutine
        self._board = board
        self._slot = slot

    def __await__(self) -> Generator[Any, Any, Result]:
        send, throw = self._coroutine.send, self._coroutine.throw
        step, slot = self._board.step, self._slot
        value: Any = None
        error: BaseException | None = None
        begun = since = meter.begin()
        cpu_ns = 0
        try:
            while True:
                step(slot)
                try:
                    waited_for = send(value) if error is None else throw(error)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                finally:
                    step(-1)
                cpu_ns += meter.of_step(since)
                try:
                    value, error = (yield waited_for), None
                except BaseException as raised:  # noqa: BLE001 -- handed on to the coroutine, cancellation included.
                    value, error = None, raised
                since = meter.begin()
        finally:
            meter.end_steps(begun, since, cpu_ns)
