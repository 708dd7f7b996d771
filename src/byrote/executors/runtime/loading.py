# SPDX-License-Identifier: MIT
"""Imports the app that an operator named on the command line. Never used on names from data."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from byrote.core.errors import BadOption
from byrote.core.ports.app import AppLike
from byrote.core.schedule.schedule import Schedule
from byrote.core.task import Registry
from byrote.executors.runtime.provenance.environment import measure, memos_of
from byrote.executors.runtime.provenance.git import GitCheckout


def load_app(path: str) -> Any:
    """The object at `module:name`, looked for in the current folder first."""
    module_name, _, name = path.partition(":")
    if module_name.endswith(".py"):
        meant = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise BadOption(f"{path!r} names a file, not a module; write {meant}:{name or 'app'}.")
    if not module_name or not all(part.isidentifier() for part in module_name.split(".")):
        raise BadOption(f"{path!r} names no app; write module:app, for example 'shop.tasks:app'.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not module_name.startswith(error.name):
            raise
        raise BadOption(
            f"No module {module_name!r} was found in {here} or on the Python path."
        ) from None
    if not hasattr(module, name or "app"):
        raise _no_such_name(module, name or "app")
    app = getattr(module, name or "app")
    if not hasattr(app, "registry"):
        raise BadOption(
            f"{module_name}:{name or 'app'} is not a Byrote app; define one with "
            "`app = byrote.App()`."
        )
    return app


def _no_such_name(module: ModuleType, name: str) -> BadOption:
    """The error for a name that the module lacks, with the nearest app that it has."""
    # An error path only: importing difflib takes longer than the check.
    from difflib import get_close_matches  # noqa: PLC0415

    apps = [known for known, value in vars(module).items() if hasattr(value, "registry")]
    near = get_close_matches(name, apps, 1, cutoff=0.5) or apps[:1]
    advice = (
        f"did you mean {module.__name__}:{near[0]}?"
        if near
        else "define an app there with `app = byrote.App()`."
    )
    return BadOption(f"The module {module.__name__} has no {name!r}; {advice}")


def introduction(app: AppLike, checkout: GitCheckout) -> dict[str, Any]:
    """The app's description for the supervisor: tasks, commands, database, provenance, queues."""
    return {
        "tasks": {task.key: task.is_async for task in app.registry if task.command is None},
        "commands": msgspec.to_builtins(app.registry.commands),
        "ignores": ignores(app.registry),
        "url": app.url,
        "schema": app.schema,
        "provenance": measure(app.registry, checkout),
        "memos": msgspec.to_builtins(memos_of(app.registry)),
        "wants_finished": app.on_finished is not None,
        "schedules": [msgspec.structs.asdict(one) for one in schedules_of(app)],
        "queues": queues_of(app),
    }


def schedules_of(app: AppLike) -> list[Schedule]:
    """The schedules that an app declares."""
    return list(app.schedules)


def queues_of(app: AppLike) -> list[str]:
    """The queues of an app's tasks and schedules: a worker's default queues."""
    named = {task.delivery.queue for task in app.registry}
    return sorted({"default", *named, *(one.queue for one in schedules_of(app))})


def ignores(registry: Registry) -> dict[str, list[str]]:
    """For each task that has any, the parts of its results that a replay does not compare."""
    return {task.key: list(task.replay_ignore) for task in registry if task.replay_ignore}


def path_of(app: Any) -> str:
    """The `module:name` of an app, found where its tasks are defined; empty if it is not there."""
    for module_name in sorted({task.function.__module__ for task in app.registry}):
        for name, value in vars(sys.modules.get(module_name, object)).items():
            if value is app:
                return f"{module_name}:{name}"
    return ""
