# SPDX-License-Identifier: MIT
"""The task that `byrote enqueue` names: of an app, else as live workers announce it."""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from byrote.assembly.app import LargePayload
from byrote.core.errors import BadOption
from byrote.core.ports.announced import NamedTask
from byrote.core.spec import Delivery, Spec
from byrote.core.task import Registry, Task
from byrote.core.text.names import bare_name
from byrote.core.unique import CallKey, call_key
from byrote.core.unserved import nearest
from byrote.executors.runtime.loading import load_app

type CheckCall = Callable[[list[Any], dict[str, Any]], str | None]
"""Raises if arguments do not fit the task; returns the unique key of the call, or None."""


class ChosenTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task, its own delivery options, and what its app does with a spec before enqueueing."""

    name: str
    version: int
    delivery: Delivery = Delivery()
    source: Literal["app", "workers", "none"] = "none"
    """Where the delivery options came from; `none`: they are the defaults."""
    warning: str = ""
    check: CheckCall | None = None
    prepare: Callable[[Spec], Spec] | None = None


class LoadedApp:
    """An app that was imported for its tasks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._app = load_app(path)
        self.url: str | None = getattr(self._app, "url", None)
        """The database that the app names."""
        self.schema: str | None = getattr(self._app, "schema", None)
        """The schema that the app names."""

    def choose(self, name: str, version: int | None) -> ChosenTask:
        """Return the task by its name, an alias or its function's name; raises BadOption."""
        task = self._find(self._app.registry, name, version)
        return ChosenTask(
            name=task.name,
            version=task.version,
            delivery=task.delivery,
            source="app",
            check=_check_of(task),
            prepare=self._prepare,
        )

    def _prepare(self, spec: Spec) -> Spec:
        """The spec after the app's hooks and checks; the command reports a large one itself."""
        prepared = getattr(self._app, "prepared", None)
        if prepared is None:
            return spec
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LargePayload)
            changed: Spec = prepared(spec)
        return changed

    def _find(self, registry: Registry, name: str, version: int | None) -> Task:
        tasks = list(registry)
        found = (
            [one for one in tasks if one.name == name]
            or [one for one in tasks if name in one.aliases]
            or [one for one in tasks if bare_name(one.name) == name]
        )
        names = sorted({one.name for one in found})
        if len(names) > 1:
            raise BadOption(f"{name!r} could be {' or '.join(names)}; write the whole name.")
        chosen = [one for one in found if version in (None, one.version)]
        if chosen:
            return max(chosen, key=lambda one: one.version)
        if found:
            versions = ", ".join(str(one.version) for one in found)
            raise BadOption(
                f"{names[0]} has no version {version} in {self._path}; it has {versions}."
            )
        near = nearest(f"{name}@{version or 1}", registry.keys)
        listed = ", ".join(registry.keys[:20]) or "none"
        advice = f"did you mean {near}?" if near else f"its tasks: {listed}."
        raise BadOption(f"{self._path} has no task {name!r}; {advice}")


def announced(found: NamedTask) -> ChosenTask:
    """A task as live workers announce it."""
    policy = found.policy
    return ChosenTask(
        name=found.name,
        version=found.version,
        delivery=Delivery() if policy is None else policy.delivery,
        source="none" if policy is None else "workers",
        warning=found.warning,
    )


def _check_of(task: Task) -> CheckCall:
    key = _key_of(task)

    def check(args: list[Any], kwargs: dict[str, Any]) -> str | None:
        task.check(tuple(args), kwargs)
        if task.arguments is not None:
            args, kwargs = task.arguments.load(args, kwargs)
        return key(tuple(args), kwargs)

    return check


def _key_of(task: Task) -> CallKey:
    chosen = task.unique_key
    if callable(chosen):
        return call_key(chosen, task.signature, task.name)
    return lambda _args, _kwargs: chosen
