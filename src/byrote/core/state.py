# SPDX-License-Identifier: MIT
"""The states of a run, and every move between them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """Where a run stands."""

    WAITING = "WAITING"
    """Not due yet, or waiting for something; `wait_reason` says for what."""
    READY = "READY"
    """Any worker that knows the task may claim it."""
    RUNNING = "RUNNING"
    """One worker holds a lease on it."""
    SUCCESSFUL = "SUCCESSFUL"
    """Ended with a result."""
    FAILED = "FAILED"
    """Ended without one; waits among the dead letters for a person."""
    CANCELLED = "CANCELLED"
    """Ended because somebody asked for it."""


FINAL: Final = frozenset({Status.SUCCESSFUL, Status.FAILED, Status.CANCELLED})

MOVES: Final[Mapping[Status, frozenset[Status]]] = {
    Status.WAITING: frozenset({Status.READY, Status.CANCELLED}),
    Status.READY: frozenset({Status.RUNNING, Status.CANCELLED}),
    Status.RUNNING: frozenset({Status.WAITING, Status.READY}) | FINAL,
    Status.SUCCESSFUL: frozenset(),
    Status.FAILED: frozenset({Status.READY}),  # By hand: `byrote runs retry`.
    Status.CANCELLED: frozenset(),
}
