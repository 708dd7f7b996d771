# SPDX-License-Identifier: MIT
"""Which specs a stored result may answer: those of tasks with a memo whose code this process has.

Whoever only knows a task's name (`byrote enqueue`, another language) cannot say which code would
compute it, and so is never answered from memory.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from byrote.core.errors import BadOption
from byrote.core.spec import Spec
from byrote.core.task import Task
from byrote.executors.runtime.provenance.environment import code_of
from byrote.store import bulk, queries
from byrote.store.queries.enqueue import is_keyed
from byrote.store.query import Query


class Memos:
    """The code of an app's tasks that have a memo. Empty, it costs a producer nothing."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, int], str] = {}

    def add(self, task: Task) -> None:
        """Know a task; its code is what it is now, while its module is being imported."""
        if task.memo is None:
            return
        if task.command is not None:
            raise BadOption(
                f"{task.name} is a command, whose program may change under a worker that runs; "
                "memo is for tasks that run in hands or inline."
            )
        code = code_of(task)
        if code is not None:
            self._codes[task.name, task.version] = code

    def enqueue_one(self, run_id: str, spec: Spec) -> Query[Any]:
        """The statement that accepts one spec."""
        if is_keyed(spec) or (self._codes and (spec.task, spec.version) in self._codes):
            return bulk.statement_for([(run_id, spec)], self._codes)
        return queries.enqueue_one(run_id, spec)

    def batches(self, specs: Iterable[tuple[str, Spec]]) -> Iterator[Query[Any]]:
        """The statements that accept these specs, one batch at a time."""
        return bulk.batches(specs, self._codes)
