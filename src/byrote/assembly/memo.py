# SPDX-License-Identifier: MIT
"""Decides which specs a stored result may answer: those of tasks with a memo, with known code.

A producer that knows only a task's name (`byrote enqueue`, another language) does not know its
code, and so never gets a stored result.
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
    """Code hashes of an app's tasks that have a memo. If empty, it costs a producer nothing."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, int], str] = {}

    def add(self, task: Task) -> None:
        """Record a task's code hash, at the time its module is imported."""
        if task.memo is None:
            return
        if task.command is not None:
            raise BadOption(
                f"{task.name} is a command, whose program may change while a worker runs; "
                "memo is for tasks that run in hands or inline."
            )
        code = code_of(task)
        if code is not None:
            self._codes[task.name, task.version] = code

    def enqueue_one(self, run_id: str, spec: Spec) -> Query[Any]:
        """Return the statement that enqueues one spec."""
        if is_keyed(spec) or (self._codes and (spec.task, spec.version) in self._codes):
            return bulk.statement_for([(run_id, spec)], self._codes)
        return queries.enqueue_one(run_id, spec)

    def batches(self, specs: Iterable[tuple[str, Spec]]) -> Iterator[Query[Any]]:
        """Return the statements that enqueue these specs, one per batch."""
        return bulk.batches(specs, self._codes)
