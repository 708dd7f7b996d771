# SPDX-License-Identifier: MIT
"""Brings signals to a worker: SIGTERM and Ctrl-C stop it, SIGUSR1 prints every stack."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from types import FrameType

from byrote.observe.stacks import stacks
from byrote.worker.worker import Worker


@contextlib.contextmanager
def signals_to(built: Worker) -> Iterator[None]:
    """Pass signals on to the worker while it runs.

    A handler interrupts the main thread anywhere, also inside the lock of the very event that a
    stop would set; so it only drops the name into a queue, which is safe, and a thread does the
    rest.
    """
    told: SimpleQueue[str | None] = SimpleQueue()

    def pass_on() -> None:
        while (name := told.get()) is not None:
            if name == "SIGUSR1":
                sys.stderr.write(stacks() + "\n")
            else:
                built.stop(name)

    def hear(number: int, _frame: FrameType | None) -> None:
        told.put(signal.Signals(number).name)

    threading.Thread(target=pass_on, name="byrote-signals", daemon=True).start()
    heard = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    before = {number: signal.signal(number, hear) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        told.put(None)
