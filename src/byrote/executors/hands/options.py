# SPDX-License-Identifier: MIT
"""Options of a pool of hands, and the settings each hand receives when it starts."""

from typing import Any

import msgspec

from byrote.executors.capacity import BUFFER_S
from byrote.executors.runtime.asks import ReplayMode
from byrote.executors.runtime.job import PerMode, TaskMode


class HandOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The number of hands, their concurrency, and the limits after which one is replaced."""

    app: str
    """`module:name` of the app they import."""
    hands: int
    """Hands that tasks of one mode may use; with tasks of both modes there may be one more."""
    concurrency: int
    """Async tasks under way at once, over all hands."""
    threads: int = 1
    """Sync tasks under way at once in each hand."""
    max_tasks: int | None = None
    max_rss: int | None = None
    python: str
    buffer_s: float = BUFFER_S
    """Seconds of work to buffer; larger where claims take longer."""
    log_format: str = "text"
    log_level: str = "info"
    log_tracebacks: bool = True
    deterministic: bool = True
    """Whether hash seed, time zone and locale are fixed, and tasks have a seeded `random`."""
    schema: str | None = None
    """The schema of Byrote's tables, for statements on connections of tasks."""
    replay: ReplayMode | None = None
    """How steps are answered where every run is a replay."""

    @property
    def limits(self) -> PerMode:
        """Tasks of each mode under way at once in each hand."""
        return {TaskMode.SYNC: self.threads, TaskMode.ASYNC: -(-self.concurrency // self.hands)}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a hand receives when it starts."""
        return {
            "app": self.app,
            "concurrency": self.limits[TaskMode.ASYNC],
            "threads": self.limits[TaskMode.SYNC],
            "log_format": self.log_format,
            "log_level": self.log_level,
            "log_tracebacks": self.log_tracebacks,
            "deterministic": self.deterministic,
            "replay": self.replay,
            "schema": self.schema,
        }
