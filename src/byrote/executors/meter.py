# SPDX-License-Identifier: MIT
"""What an attempt uses: wall time, CPU time, and how large its hand has been.

Asking the kernel twice and storing the answer costs a run some microseconds, so only tasks that ask
for it (`measure=True`) are measured. CPU time is that of the thread, or of a coroutine's own steps;
what a task has done by threads or processes of its own is not counted.
"""

import resource
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Self

from byrote.executors.output import current_tray


class Meter:
    """Measures from `with` to its end; what it found goes along with the attempt's result."""

    def __enter__(self) -> Self:
        self._cpu_ns = 0
        self._wall = time.perf_counter_ns()
        self.resume()
        return self

    def resume(self) -> None:
        """The attempt's code runs from now on."""
        self._since = time.thread_time_ns()

    def pause(self) -> None:
        """Others use the thread from now on."""
        self._cpu_ns += time.thread_time_ns() - self._since

    def __exit__(self, *_error: object) -> None:
        self.pause()
        wall_ns = time.perf_counter_ns() - self._wall
        rss_max = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        tray = current_tray()
        if tray is not None:
            usage = {"wall_us": wall_ns // 1000, "cpu_us": self._cpu_ns // 1000}
            tray.keep("usage", lambda: usage | {"rss_max": rss_max})


def call_measured(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function and measure it."""
    with Meter():
        return function(*args, **kwargs)


class Measured:
    """Awaits a coroutine and counts what its own steps use."""

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        with Meter() as meter:
            value: Any = None
            error: BaseException | None = None
            while True:
                try:
                    if error is None:
                        waited_for = self._coroutine.send(value)
                    else:
                        waited_for = self._coroutine.throw(error)
                except StopIteration as stop:
                    return stop.value
                meter.pause()
                try:
                    value, error = (yield waited_for), None
                except BaseException as raised:  # noqa: BLE001 -- handed on to the coroutine, cancellation included.
                    value, error = None, raised
                meter.resume()
