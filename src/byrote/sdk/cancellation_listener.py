# SPDX-License-Identifier: MIT
"""Receives cancellations of the worker's runs at once, by a long poll of the service.

A hint: a worker that misses it learns with the next renewal, after a third of the lease. So errors
here are not reported: a service that does not answer is asked again later; one that does not have
the route is not.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from byrote.core.errors import ServiceUnreachable, StoreRefused
from byrote.core.ports.store import PartContext
from byrote.sdk.calls import worker as leasing
from byrote.sdk.transport.request import ServiceCall

WAIT_S = 25.0
"""How long one request waits."""
PAUSE_S = 1.0
"""Pause between a reply and the next request: the cancelled run takes a moment to end."""


class ListenerConnection(Protocol):
    """A connection to the service."""

    def run[T](self, call: ServiceCall[T]) -> T:
        """Send until there is an answer, or the worker has stopped."""

    def drop(self) -> None:
        """Close the connection."""


def _always() -> bool:
    return True


class CancellationListener:
    """A thread that waits for cancellations; a daemon, as its last request may be dropped."""

    def __init__(
        self,
        part: PartContext,
        wire: Callable[[PartContext], ListenerConnection],
        on_cancel: Callable[[], None],
    ) -> None:
        self._part = PartContext(
            "cancel", self._stopped, lambda _what, _error: None, part.jitter, _always
        )
        self._outer = part.stopped
        self._wire = wire
        self._on_cancel = on_cancel
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._deaf = False
        """Whether the service does not have the route, or refuses it to this token."""

    def open(self, worker: str) -> None:
        """Start to listen for this worker, unless a thread does already."""
        if not self._deaf and (self._thread is None or not self._thread.is_alive()):
            self._closed.clear()
            self._thread = threading.Thread(
                target=self._listen, args=(worker,), name="byrote-cancellations", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Stop; a request that waits at this moment is abandoned."""
        self._closed.set()

    def _stopped(self, seconds: float) -> bool:
        return self._closed.wait(seconds) or self._outer(0)

    def _listen(self, worker: str) -> None:
        wire = self._wire(self._part)
        try:
            while not self._stopped(0):
                if wire.run(leasing.cancellation_hint(worker, wait_s=WAIT_S)):
                    self._on_cancel()
                    self._stopped(PAUSE_S)
        except StoreRefused:
            self._deaf = True
        except ServiceUnreachable:
            pass
        finally:
            wire.drop()
