# SPDX-License-Identifier: MIT
"""Threads in which async tasks use the ORM: few, so that a worker has few database sessions.

Django runs the ORM of an async task in one thread, which owns the task's connections. An attempt
takes a thread at its first sync call and keeps it until it ends, because its session may have
state. If all threads are taken, that call waits, within the task's timeout. Attempts that make no
sync call never wait. A thread that was idle for `IDLE_S` closes its connections and ends.

Functions that a task itself sends to other threads (`asyncio.to_thread`) run in those of the event
loop; connections that they open there are tidied after each call.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Self
from weakref import WeakSet

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import connections

from byrote.django.worker.sessions import tidy
from byrote.executors.runtime.async_hands import async_hands

IDLE_S = 10.0

type ThreadJob = Callable[[], None]

_log = logging.getLogger("byrote.django")


def share_of(connections_max: int) -> int:
    """Return the share of this process in a worker's connections for async tasks: at least one."""
    return max(1, connections_max // async_hands())


class Seat(Executor):
    """The thread of one attempt, from its first sync call on. Guarded by the pool's lock."""

    def __init__(self, threads: "AsyncThreads") -> None:
        self._threads = threads
        self.thread: _Thread | None = None
        self.waiting: list[ThreadJob] = []
        """Calls made before a thread was free."""

    def submit[**P, R](self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Call a function in the attempt's thread, as soon as it has one."""
        future: Future[R] = Future()
        self._threads.put(self, partial(_call, future, partial(fn, *args, **kwargs)))
        return future


class AsyncThreads:
    """A bounded number of threads, each serving one attempt at a time."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self.lock = threading.Lock()
        self.idle: list[_Thread] = []
        self._count = 0
        self._waiting: deque[Seat] = deque()

    def seat(self) -> "SeatExecutor":
        """Return a context in which all of Django's sync calls use the same thread."""
        return SeatExecutor(Seat(self), self)

    def put(self, seat: Seat, job: ThreadJob) -> None:
        """Queue a job for a seat's thread."""
        with self.lock:
            if seat.thread is None and not seat.waiting:
                seat.thread = self._take()
                if seat.thread is None:
                    self._waiting.append(seat)
            if seat.thread is None:
                seat.waiting.append(job)
            else:
                seat.thread.jobs.put(job)

    def _take(self) -> "_Thread | None":
        if self.idle:
            return self.idle.pop()
        if self._count >= self._limit():
            return None
        self._count += 1
        thread = _Thread(self)
        thread.start()
        return thread

    def leave(self, seat: Seat) -> None:
        """Release the thread of an ended attempt to the next waiting seat."""
        with self.lock:
            thread, seat.thread = seat.thread, None
            if thread is None:
                if seat.waiting:
                    self._waiting.remove(seat)
                    seat.waiting.clear()
                return
            thread.jobs.put(_tidy)
            if self._count > self._limit():
                # Async tasks use more hands than when it was started.
                self._count -= 1
                thread.jobs.put(None)
                return
            if not self._waiting:
                self.idle.append(thread)
                return
            following = self._waiting.popleft()
            following.thread = thread
            for job in following.waiting:
                thread.jobs.put(job)
            following.waiting.clear()

    def retire(self, thread: "_Thread") -> bool:
        """Remove an idle thread, which then ends; False if it is in use."""
        with self.lock:
            if thread not in self.idle or not thread.jobs.empty():
                return False
            self.idle.remove(thread)
            self._count -= 1
            return True


class _Thread(threading.Thread):
    def __init__(self, threads: AsyncThreads) -> None:
        super().__init__(name="byrote-async", daemon=True)
        self.jobs: SimpleQueue[ThreadJob | None] = SimpleQueue()
        self._threads = threads

    def run(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=IDLE_S)
            except Empty:
                if self._threads.retire(self):
                    break
                continue
            if job is None:
                break
            job()
        connections.close_all()


class SeatExecutor(ThreadSensitiveContext):
    """Makes asgiref use a seat as the executor of thread-sensitive calls."""

    def __init__(self, seat: Seat, threads: AsyncThreads) -> None:
        super().__init__()
        self._seat = seat
        self._threads = threads

    async def __aenter__(self) -> Self:
        await super().__aenter__()  # type: ignore[no-untyped-call]
        if self.token:
            SyncToAsync.context_to_thread_executor[self] = self._seat
        _tidy_default_threads(asyncio.get_running_loop())
        return self

    async def __aexit__(self, *error: object) -> None:
        if self.token:
            SyncToAsync.context_to_thread_executor.pop(self, None)
        await super().__aexit__(*error)  # type: ignore[no-untyped-call]
        self._threads.leave(self._seat)


class _DefaultThreads(ThreadPoolExecutor):
    def submit[**P, R](self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return super().submit(partial(_call_and_tidy, fn), *args, **kwargs)


_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def _tidy_default_threads(loop: asyncio.AbstractEventLoop) -> None:
    if loop not in _loops:
        _loops.add(loop)
        loop.set_default_executor(_DefaultThreads(thread_name_prefix="byrote-default"))


def _call_and_tidy[**P, R](fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    try:
        return fn(*args, **kwargs)
    finally:
        if connections.all(initialized_only=True):
            _tidy()


def _call(future: Future[Any], job: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        value = job()
    except BaseException as error:  # noqa: BLE001 -- raised again where the future is awaited.
        future.set_exception(error)
    else:
        future.set_result(value)


def _tidy() -> None:
    try:
        tidy()
    except Exception:  # noqa: BLE001 -- the thread is needed for the next attempt.
        _log.exception("connections could not be reset and were closed")
        connections.close_all()
