# SPDX-License-Identifier: MIT
"""The statuses of a run, and every transition between them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """The status of a run."""

    WAITING = "WAITING"
    """Not due yet, or waiting for something; see `wait_reason`."""
    READY = "READY"
    """Any worker that knows the task may claim it."""
    RUNNING = "RUNNING"
    """One worker holds a lease on it."""
    SUCCESSFUL = "SUCCESSFUL"
    """Ended with a result."""
    FAILED = "FAILED"
    """Ended without one; a dead letter that waits for a person or a rule."""
    CANCELLED = "CANCELLED"
    """Ended on request."""


FINAL: Final = frozenset({Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED})

MOVES: Final[Mapping[Status, frozenset[Status]]] = {
    Status.WAITING: frozenset({Status.READY, Status.CANCELLED}),
    Status.READY: frozenset({Status.RUNNING, Status.CANCELLED}),
    Status.RUNNING: frozenset({Status.WAITING, Status.READY}) | FINAL,
    Status.SUCCESSFUL: frozenset(),
    Status.FAILED: frozenset({Status.READY}),  # By hand: `byrote runs retry`.
    Status.CANCELLED: frozenset(),
}
