# SPDX-License-Identifier: MIT
"""What every part of a worker is given: its name, time, chance, and somebody who listens."""

from collections.abc import Callable
from typing import NamedTuple

from byrote.core.ports.executor import Clock, Emit


class WorkerContext(NamedTuple):
    """Time and chance come through the door, here."""

    worker: str
    clock: Clock
    chance: Callable[[], float]
    token: Callable[[], str]
    emit: Emit
