# SPDX-License-Identifier: MIT
"""The context of every part of a worker: its name, clock, randomness and event sink."""

from collections.abc import Callable
from typing import NamedTuple

from byrote.core.ports.executor import Clock, Emit


class WorkerContext(NamedTuple):
    """Clock, randomness, tokens and event sink, passed in."""

    worker: str
    clock: Clock
    jitter: Callable[[], float]
    token: Callable[[], str]
    emit: Emit
