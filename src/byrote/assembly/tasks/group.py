# SPDX-License-Identifier: MIT
"""Groups of tasks that a module defines without the app, which adds them later."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, override

from byrote.assembly.app import App
from byrote.assembly.handles import RunHandle, TaskHandle
from byrote.assembly.settings import Settings
from byrote.core.errors import BadOption
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, Spec
from byrote.core.task import Task


class TaskGroup:
    """Tasks with common defaults; `app.add(group)` makes them tasks of an app.

    The name of a task is `prefix` and its own name. `queue`, `priority`, `timeout`, `retry` and
    `labels` apply to tasks that set none themselves.
    """

    def __init__(
        self,
        *,
        prefix: str = "",
        queue: str = "default",
        priority: int = 0,
        timeout: timedelta | str | float | None = None,
        retry: Retry | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        defaults = {
            "queue": queue,
            "priority": priority,
            "timeout": timeout,
            "labels": labels,
        }
        Delivery(**defaults)  # type: ignore[arg-type]  # Wrong defaults fail here, not at a task.
        self._tasks = _GroupApp(prefix, {**defaults, "retry": retry})
        self.task = self._tasks.task
        """Make a function a task of this group; as `App.task`, with the group's defaults."""

    def join(self, app: App, adopt: Callable[[Task], None]) -> None:
        """Pass all tasks to an app, those of later definitions too; called by `App.add`."""
        self._tasks.join(app, adopt)


class _GroupApp(App):
    """Collects the tasks of a group, and enqueues them in the app that the group was added to."""

    def __init__(self, prefix: str, defaults: Mapping[str, Any]) -> None:
        super().__init__()
        self._prefix = prefix
        self._defaults = defaults
        self._joined: App | None = None
        self._to_app: Callable[[Task], None] | None = None

    def join(self, app: App, adopt: Callable[[Task], None]) -> None:
        if self._joined not in {None, app}:
            raise BadOption("This group was added to another app; define a group for each app.")
        for task in self.registry:
            adopt(task)
        self._joined, self._to_app = app, adopt

    @override
    def _make(self, function: Callable[..., Any], **options: Any) -> TaskHandle[..., Any]:
        if self._prefix:
            own = options.get("name") or getattr(function, "__name__", repr(function))
            options["name"] = f"{self._prefix}{own}"
        return super()._make(function, **{**self._defaults, **options})

    @override
    def _register(self, task: Task) -> None:
        super()._register(task)
        if self._to_app is not None:
            self._to_app(task)

    def _app(self, call: str) -> App:
        if self._joined is None:
            names = ", ".join(sorted(task.name for task in self.registry))
            raise BadOption(
                f"{call}: the group of {names:.200} was not added to an app; "
                "call app.add(group) first, and import the module that does."
            )
        return self._joined

    @property
    def settings(self) -> Settings:
        """The settings of the app."""
        return self._app("spec").settings

    @override
    def enqueue(self, spec: Spec, *, connection: Any = None) -> RunHandle[Any]:
        return self._app("enqueue").enqueue(spec, connection=connection)

    @override
    async def aenqueue(self, spec: Spec, *, connection: Any = None) -> RunHandle[Any]:
        return await self._app("aenqueue").aenqueue(spec, connection=connection)
