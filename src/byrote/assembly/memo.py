# SPDX-License-Identifier: MIT
"""Decides which specs a stored result may answer: those of tasks with a memo, with known code.

A producer that knows only a task's name (`byrote enqueue`, another language) does not know its
code, and so never gets a stored result.
"""

from byrote.core.errors import BadOption
from byrote.core.task import Task
from byrote.executors.runtime.provenance.environment import code_of


class Memos:
    """Code hashes of an app's tasks that have a memo. If empty, it costs a producer nothing."""

    def __init__(self) -> None:
        self.codes: dict[tuple[str, int], str] = {}
        """By name and version, for `accept` of `store/queries/enqueue.py`."""

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
            self.codes[task.name, task.version] = code
