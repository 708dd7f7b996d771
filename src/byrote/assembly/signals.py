# SPDX-License-Identifier: MIT
"""Signal handlers of a worker: SIGTERM and Ctrl-C stop it, SIGUSR1 prints all stacks."""

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

    A handler interrupts the main thread anywhere, also while it holds the lock of the event that a
    stop would set; so it only puts the name into a queue, which is safe, and a thread does the
    rest.
    """
    received: SimpleQueue[str | None] = SimpleQueue()

    def pass_on() -> None:
        while (name := received.get()) is not None:
            if name == "SIGUSR1":
                sys.stderr.write(stacks() + "\n")
            else:
                built.stop(name)

    def handle(number: int, _frame: FrameType | None) -> None:
        received.put(signal.Signals(number).name)

    threading.Thread(target=pass_on, name="byrote-signals", daemon=True).start()
    handled = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    before = {number: signal.signal(number, handle) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        received.put(None)
