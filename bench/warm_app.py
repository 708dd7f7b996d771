# SPDX-License-Identifier: MIT
"""The bench's tasks, in hands from which BENCH_WITHOUT takes something away first.

What is taken away has no switch: nobody but this bench has a use for one.
"""

import os
import sys
from typing import Any

from byrote.executors.runtime import engine, usage
from byrote.lab.bench.tasks import app

__all__ = ["app"]


class _NoTray:
    """An attempt of which nothing is kept."""

    __slots__ = ()

    def __init__(self, _job: object) -> None:
        pass

    def close_with(self, result: list[Any]) -> list[Any]:
        return result


if "capture" in os.environ.get("BENCH_WITHOUT", ""):
    engine.Tray = _NoTray  # type: ignore[misc, assignment]
    engine.open_scope = lambda _scope: None  # type: ignore[assignment]
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__

if "measuring" in os.environ.get("BENCH_WITHOUT", ""):
    usage.begin = lambda: (0, 0)
    usage.end = lambda _begun: None
    usage.of_step = lambda _begun: 0
    usage.end_steps = lambda _begun, _step, _cpu_ns: None
