# SPDX-License-Identifier: MIT
"""Finds runs of tasks that this worker can execute but did not know when it started.

An app that names its tasks by where they are defined can execute any that can be imported; the
queues show which ones there are. Runs of unrecognised tasks stay in the queue: another worker, with
newer code, may know them.
"""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from byrote.core.ports.executor import Executor
from byrote.core.ports.replies import UnknownTaskRef
from byrote.core.ports.store import PartContext
from byrote.worker.claiming.claimer import Claimer

EVERY_S = 1.0
REFUSED_MAX = 10_000


class DiscoveryPort(Protocol):
    """The store of the discovery thread."""

    def unknown_tasks(self, *, queues: Sequence[str], tasks: Sequence[str]) -> list[UnknownTaskRef]:
        """Return tasks at the front of the queues that are not among these."""

    def close(self) -> None:
        """Close the connection; the next request opens it again."""


class DiscoveryHooks(NamedTuple):
    """Hooks that decide whether a run is for this worker, and that learn when it is."""

    open: Callable[[PartContext], DiscoveryPort]
    recognise: Callable[[UnknownTaskRef], bool]
    learn: Callable[[str], None]
    """Receives a task's name and version."""


class Discovery:
    """Looks at the front of the queues at intervals."""

    def __init__(
        self,
        store: DiscoveryPort,
        executor: Executor,
        claimer: Claimer,
        unknown_tasks: DiscoveryHooks,
    ) -> None:
        self._store = store
        self._executor = executor
        self._claimer = claimer
        self._unknown_tasks = unknown_tasks
        self._refused: set[UnknownTaskRef] = set()
        self._stopped = threading.Event()

    def run(self) -> None:
        """Look until stopped."""
        while not self._stopped.wait(EVERY_S):
            self.look()

    def stop(self) -> None:
        """Stop looking."""
        self._stopped.set()

    def look(self) -> bool:
        """Learn the tasks of waiting runs; returns whether any was new."""
        queues, tasks = self._claimer.queues, self._executor.tasks
        asked = self._store.unknown_tasks(queues=queues, tasks=tasks)
        found = [one for one in asked if one not in self._refused]
        known = [one for one in found if self._unknown_tasks.recognise(one)]
        for one in known:
            self._unknown_tasks.learn(one.key)
            self._claimer.serve(one.queue)
        if len(self._refused) < REFUSED_MAX:
            self._refused.update(one for one in found if one not in known)
        if known:
            self._claimer.nudge()
        return bool(known)
