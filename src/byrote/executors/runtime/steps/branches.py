# SPDX-License-Identifier: MIT
"""Which branch of a task makes a call: the task itself, or an asyncio task that it has started.

Branches of an async task (`asyncio.gather`, `TaskGroup`, `create_task`) reach their steps in an
order that depends on timing: a later attempt gets recorded results at once, so its branches
overtake each other in another way. A number in the order of all calls would therefore not find a
step again. What does not depend on timing is the order in which the parent starts its branches, and
the order of calls within one. So a call is identified by its place: the branch and the position in
it.

A branch is named after its coroutine function and numbered among those of that name, in the order
in which they were started. Asyncio tasks that libraries start on the way have other names, and
those that a step starts are not counted, so neither shifts the numbers.

The task factory of a loop counts them. On a loop without it, which a task has made for itself,
branches are numbered in the order of their first calls.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary, ref

LABEL_MAX = 40
PLACE_MAX = 200
"""Characters of a place as it is stored; a longer one is shortened to its hash."""

_branch: ContextVar["Branch | None"] = ContextVar("byrote_branch", default=None)


class Branch:
    """The sequence of calls of one attempt, or of one asyncio task in it."""

    __slots__ = (
        "_adopted",
        "_calls",
        "_children",
        "_owner",
        "_ticks",
        "born",
        "lineage",
        "path",
        "root",
    )

    def __init__(self, parent: "Branch | None" = None, label: str = "") -> None:
        self.root: Branch = self if parent is None else parent.root
        self.path: str = label if parent is None or not parent.path else f"{parent.path}>{label}"
        self.lineage: tuple[Branch, ...] = (self,) if parent is None else (*parent.lineage, self)
        """From the task itself to this branch."""
        self._ticks = 0
        self.born = self.root.tick()
        """When it was started, in starts and errors of the attempt."""
        self._calls = 0
        self._children: Counter[str] = Counter()
        self._owner: Callable[[], object] | None = None
        self._adopted: WeakKeyDictionary[asyncio.Task[Any], Branch] | None = None

    def next_place(self) -> str:
        """The place of the next call: `3` in the task itself, `fetch.2/3` in a branch."""
        self._calls += 1
        place = f"{self.path}/{self._calls}" if self.path else str(self._calls)
        return place if len(place) <= PLACE_MAX else sha256(place.encode()).hexdigest()

    def start(self, coroutine: object) -> "Branch":
        """A new branch below this one."""
        name = str(getattr(coroutine, "__name__", type(coroutine).__name__))
        label = "".join(letter for letter in name if letter.isalnum() or letter == "_")[:LABEL_MAX]
        self._children[label] += 1
        return Branch(self, f"{label}.{self._children[label]}")

    def tick(self) -> int:
        """Count a start or an error; of the root, for the whole attempt."""
        self._ticks += 1
        return self._ticks

    @property
    def ended(self) -> bool:
        """Whether its asyncio task has ended; False for the task itself."""
        if self._owner is None:
            return False
        task: Any = self._owner()
        return task is None or task.done()

    def belong_to(self, task: "asyncio.Task[Any]") -> None:
        """Record the asyncio task that makes these calls."""
        self._owner = ref(task)

    def of_task(self, task: "asyncio.Task[Any] | None") -> "Branch":
        """The branch itself, or one below it for an asyncio task that no factory has counted."""
        if task is None or (self._owner is not None and self._owner() is task):
            return self
        if self._adopted is None:
            self._adopted = WeakKeyDictionary()
        if task not in self._adopted:
            self._adopted[task] = self.start(task.get_coro())
            self._adopted[task].belong_to(task)
        return self._adopted[task]


def open_branches() -> Branch:
    """Begin an attempt: the branch of the task itself, from here on."""
    root = Branch()
    task = _current_task()
    if task is not None:
        root.belong_to(task)
    _branch.set(root)
    return root


def current_branch(root: Branch) -> Branch:
    """The branch of an attempt that makes the current call."""
    branch = _branch.get()
    if branch is None or branch.root is not root:
        return root  # A thread that the task has started, or another attempt's.
    return branch.of_task(_current_task())


def went_on(caller: Branch, failed: Branch, at: int) -> bool:
    """Whether a call of one branch proves that the task has caught what another one raised.

    The branch they have in common must have gone on since: it calls, or it has started the
    branch that calls after the error; and all branches below it that lead to the failed one must
    have ended. While
    the others of a `gather` go on, the error of one may still end the task.
    """
    shared = sum(one is other for one, other in zip(caller.lineage, failed.lineage, strict=False))
    since = all(branch.born > at for branch in caller.lineage[shared : shared + 1])
    return since and all(branch.ended for branch in failed.lineage[shared:])


def _current_task() -> "asyncio.Task[Any] | None":
    with contextlib.suppress(RuntimeError):
        return asyncio.current_task()
    return None


def count_branches(loop: asyncio.AbstractEventLoop, inside: Callable[[], object]) -> None:
    """Have a loop count the branches of attempts; those that are started `inside` a step are not.

    A loop that has a task factory is not changed.
    """
    if loop.get_task_factory() is not None:
        return

    def start(
        its: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> "asyncio.Task[Any]":
        parent = _branch.get()
        context = options.pop("context", None)
        if parent is None or context is not None or inside():
            return asyncio.Task(coroutine, loop=its, context=context, **options)
        branch = parent.start(coroutine)
        context = copy_context()
        context.run(_branch.set, branch)
        task = asyncio.Task(coroutine, loop=its, context=context, **options)
        branch.belong_to(task)
        return task

    loop.set_task_factory(start)
