# SPDX-License-Identifier: MIT
"""Assertions about enqueued calls: of `captured_tasks` inside its block, else of the database."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from byrote.assembly.app import App
from byrote.assembly.handles import TaskHandle
from byrote.core.json.codec import unpack
from byrote.core.run import Run
from byrote.core.task import Task
from byrote.store import queries

CALLS_MAX = 1_000
"""Runs that are read from the database, the newest ones."""
SHOWN_MAX = 20
"""Calls that the message of a failed assertion lists."""


class EnqueuedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a task that was enqueued and has not been executed."""

    id: str
    """The run's id; made up for a captured call."""
    task: str
    """The name of the task."""
    version: int
    """The version of the task."""
    args: list[Any]
    """The positional arguments, in their JSON form."""
    kwargs: dict[str, Any]
    """The arguments by name, in their JSON form."""
    queue: str
    """The queue of the run."""
    priority: int
    """-100 to 100, higher first."""
    run_after: datetime | timedelta | None
    """A moment; of a captured call, also a delay, or None."""
    labels: dict[str, str]
    """The labels that the caller set."""

    def __str__(self) -> str:
        return f"{self.task}{shown(self.args, self.kwargs)}"


CAPTURED: WeakKeyDictionary[App, list[EnqueuedCall]] = WeakKeyDictionary()
"""The captured calls of apps inside `captured_tasks`."""


def assert_enqueued(
    app: App, task: TaskHandle[..., Any], /, *args: Any, count: int | None = None, **kwargs: Any
) -> EnqueuedCall | None:
    """Return the newest enqueued call; without arguments, the newest of any call of the task.

    Raises AssertionError if there is none, or not exactly `count`; returns None for `count=0`. An
    argument by position equals the same one by name.
    """
    every = _calls(app)
    found = _matching(app, task, every, (args, kwargs))
    if found if count is None else len(found) == count:
        return found[-1] if found else None
    wanted = f"{task.name}{shown(args, kwargs) if args or kwargs else ''}"
    problem = "was not enqueued" if count is None else f"was enqueued {len(found)} times"
    number = "" if count is None else f", not {count}"
    raise AssertionError(f"{wanted} {problem}{number}. {_listed(task.name, every)}")


def assert_not_enqueued(app: App, task: TaskHandle[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Raise AssertionError if such a call is enqueued; without arguments, any call of the task."""
    for call in _matching(app, task, _calls(app), (args, kwargs)):
        raise AssertionError(f"{call} was enqueued.")


def shown(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Arguments as they are written in a call."""
    words = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
    return f"({', '.join(words)})"


def _listed(name: str, calls: Sequence[EnqueuedCall]) -> str:
    """The enqueued calls as lines of text: those of the task first."""
    if not calls:
        return "Nothing is enqueued."
    ranked = sorted(calls, key=lambda call: call.task != name)
    lines = [f"\n  {call}" for call in ranked[:SHOWN_MAX]]
    rest = len(calls) - len(lines)
    return f"Enqueued:{''.join(lines)}" + (f"\n  and {rest} more" if rest else "")


def _matching(
    app: App,
    task: TaskHandle[..., Any],
    calls: Sequence[EnqueuedCall],
    wanted: tuple[Sequence[Any], Mapping[str, Any]],
) -> list[EnqueuedCall]:
    args, kwargs = wanted
    known = app.registry.find(task.name, task.version)
    keys = {
        (one.name, one.version) for one in app.registry.served if one.function is known.function
    }
    same = [call for call in calls if (call.task, call.version) in keys]
    if not args and not kwargs:
        return same
    # Through the spec: arguments are compared in the form in which they are sent.
    sent = unpack(task.spec(*args, **kwargs).text)
    bound = _bound(known, sent["args"], sent["kwargs"])
    return [call for call in same if _bound(known, call.args, call.kwargs) == bound]


def _bound(task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    bound = task.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _calls(app: App) -> list[EnqueuedCall]:
    """All calls that are enqueued, the newest last."""
    captured = CAPTURED.get(app)
    if captured is not None:
        return captured
    listed = [
        run.id
        for status in ("READY", "WAITING")
        for run in app.store.all(queries.runs(status=status, limit=CALLS_MAX))
    ]
    # The list has no arguments; ids begin with the time.
    found = [app.store.first(queries.run(run_id)) for run_id in sorted(listed)]
    return [_call_of(run) for run in found if run is not None]


def _call_of(run: Run) -> EnqueuedCall:
    said = unpack(run.spec_json)
    return EnqueuedCall(
        id=run.id,
        task=run.task,
        version=run.version,
        args=said["args"],
        kwargs=said["kwargs"],
        queue=run.queue,
        priority=run.priority,
        run_after=run.run_after,
        labels=run.labels,
    )
