# SPDX-License-Identifier: MIT
"""Imports the app that an operator named on the command line. Never used on names from data."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from byrote.core.errors import BadOption
from byrote.core.ports.announced import TaskPolicy, policy_of
from byrote.core.ports.app import Announced, AppLike
from byrote.core.ports.hooks import HookWants
from byrote.core.schedule.schedule import Schedule
from byrote.core.task import Registry
from byrote.executors.runtime.provenance.environment import measure, memos_of
from byrote.executors.runtime.provenance.git import GitCheckout

POLICIES_MAX = 1_000
"""Tasks whose delivery options a worker announces; of an app with more it announces none."""
POLICIES_BYTES_MAX = 64 * 1024
"""Bytes of these options as JSON; of an app with more it announces none."""


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
        if not _is_about(error, module_name):
            raise
        raise BadOption(
            f"No module {module_name!r} was found in {here} or on the Python path."
            f"{_nearest(error, path)}"
        ) from None
    if not hasattr(module, name or "app"):
        raise _no_such_name(module, name or "app")
    app = getattr(module, name or "app")
    if not hasattr(app, "registry"):
        raise BadOption(
            f"{module_name}:{name or 'app'} is not a Byrote app; define one with "
            "`app = byrote.App()`."
        )
    import_included(app)
    return app


def import_included(app: Any) -> None:
    """Import the modules that the app includes; raises BadOption for one that does not exist."""
    for name in getattr(app, "include", ()):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not _is_about(error, name):
                raise
            raise BadOption(
                f"The app includes the module {name!r}, which was not found in {Path.cwd()} or on "
                f"the Python path.{_nearest(error, name)}"
            ) from None


def checked_modules(include: Sequence[str]) -> tuple[str, ...]:
    """The value of `App(include=…)`; raises BadOption if it is not a list of module names."""
    names = () if isinstance(include, str) else tuple(include)
    if isinstance(include, str) or not all(map(_is_module_name, names)):
        raise BadOption(
            f"include is a list of module names, such as ['shop.mail'], not {include!r:.200}."
        )
    return names


def _is_module_name(name: object) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _is_about(error: ModuleNotFoundError, module_name: str) -> bool:
    """Whether the module itself is missing, and not one that it imports."""
    return error.name is None or f"{module_name}.".startswith(f"{error.name}.")


def _nearest(error: ModuleNotFoundError, path: str) -> str:
    """The path with the nearest module that exists, as advice; empty if none is near."""
    # An error path only: importing these takes longer than the check.
    from difflib import get_close_matches  # noqa: PLC0415
    from pkgutil import iter_modules  # noqa: PLC0415

    missing = error.name or ""
    package, _, last = missing.rpartition(".")
    parent = sys.modules.get(package)
    folders = getattr(parent, "__path__", None) if package else [str(Path.cwd())]
    known = [found.name for found in iter_modules(folders)] if folders else []
    near = get_close_matches(last, known, 1)
    if not near:
        return ""
    found = f"{package}.{near[0]}" if package else near[0]
    return f" Did you mean {found}{path.removeprefix(missing)}?"


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


def introduction(
    app: AppLike, checkout: GitCheckout, hooks: HookWants | None = None
) -> dict[str, Any]:
    """The app's description for the supervisor: tasks, commands, database, provenance, queues."""
    return {
        "tasks": {task.key: task.is_async for task in app.registry.served if task.command is None},
        "commands": msgspec.to_builtins(app.registry.commands),
        "ignores": ignores(app.registry),
        "url": app.url,
        "schema": app.schema,
        "provenance": measure(app.registry, checkout),
        "memos": msgspec.to_builtins(memos_of(app.registry)),
        "wants_finished": app.on_finished is not None,
        "schedules": [msgspec.structs.asdict(one) for one in schedules_of(app)],
        "announced": announced(app),
        **({} if hooks is None else {"hooks": msgspec.to_builtins(hooks)}),
    }


def announced(app: AppLike) -> Announced:
    """What a worker announces about the tasks of an app besides their names."""
    return Announced(queues_of(app), app.registry.bare, policies_of(app.registry))


def policies_of(registry: Registry) -> dict[str, TaskPolicy]:
    """The delivery options of all tasks; empty if there are too many to store with a worker."""
    bare = set(registry.bare)
    found = {one.key: policy_of(one.delivery) for one in registry.served if one.key not in bare}
    large = len(found) > POLICIES_MAX or len(msgspec.json.encode(found)) > POLICIES_BYTES_MAX
    return {} if large else found


def schedules_of(app: AppLike) -> list[Schedule]:
    """The schedules that an app declares."""
    return list(app.schedules)


def queues_of(app: AppLike) -> list[str]:
    """The queues of an app's tasks and schedules: a worker's default queues."""
    named = {task.delivery.queue for task in app.registry}
    return sorted({"default", *named, *(one.queue for one in schedules_of(app))})


def ignores(registry: Registry) -> dict[str, list[str]]:
    """For each task that has any, the parts of its results that a replay does not compare."""
    return {task.key: list(task.replay_ignore) for task in registry.served if task.replay_ignore}


def path_of(app: Any) -> str:
    """The `module:name` of an app, found where its tasks are defined; empty if it is nowhere."""
    likely = sorted({task.function.__module__ for task in app.registry})
    # Tasks of a group, and included ones, need not be where the app is.
    others = [name for name in list(sys.modules) if name != "__main__"]
    for module_name in [*likely, *others]:
        for name, value in list(vars(sys.modules.get(module_name, object)).items()):
            if value is app:
                return f"{module_name}:{name}"
    return ""
