# SPDX-License-Identifier: MIT
"""Measures the environment of attempts: code, packages, Python, machine; once per process.

It happens between the import of the app and the first run, so it must be quick: a few
milliseconds. Versions are read off the names of folders, functions are hashed by their bytecode,
and of the app's packages only those modules are read that were imported.
"""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import file_digest, sha256
from pathlib import Path
from types import CodeType
from typing import Any

from byrote.core.command import Command
from byrote.core.duration import micros
from byrote.core.json.codec import pack
from byrote.core.memo import Memo, memo_code
from byrote.core.outcome import safe_text
from byrote.core.task import Registry, Task
from byrote.executors.runtime.provenance.git import GitCheckout
from byrote.executors.runtime.provenance.project import Project

AROUND = "byrote.executors.runtime.around"
"""The module whose functions wrap those of tasks that have `around` hooks."""
FIXED = {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"}
"""Variables that hands and commands have, whatever the worker's are."""
SCRIPT_MAX = 1024 * 1024
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_SEPARATORS = re.compile(r"[-_.]+")
_IMAGE = re.compile(r'^imageid="([^"]+)"', re.MULTILINE)


def measure(registry: Registry, checkout: GitCheckout) -> dict[str, Any]:
    """The document of `core/replay/provenance.py`, without the parts that the worker adds."""
    tops = sorted({top_of(task) for task in registry if not _is_program(task)})
    project = Project(tops)
    uses = {
        name: project.used_by(name)
        for name in sorted({_module_of(task) for task in registry if not _is_program(task)})
    }
    files = {top: dict(module_files(top)) for top in tops}
    packages = distributions(sys.path)
    uname = os.uname()
    return {
        "code": {
            "tasks": {task.key: _code_of(task) for task in registry.served},
            "trees": {top: tree_digest(found) for top, found in files.items()},
            "modules": dict(sorted(project.hashes.items())),
            "uses": uses,
        },
        "vcs": checkout.describe(path for found in files.values() for path in found.values()),
        "packages": packages,
        "packages_hash": pack(packages).digest.hex(),
        "python": {
            "version": ".".join(map(str, sys.version_info[:3])),
            "implementation": sys.implementation.name,
            "build": sys.version,
        },
        "platform": {
            "system": uname.sysname,
            "release": uname.release,
            "machine": uname.machine,
            "libc": _libc(),
        },
        "image": image_digest(),
        "byrote": packages.get("byrote"),
        "environment": {name: _variable(name) for name in FIXED},
    }


def top_of(task: Task) -> str:
    """The top-level package, or module, that a task was defined in."""
    return safe_text(str(task.function.__module__).partition(".")[0])


def _module_of(task: Task) -> str:
    return safe_text(str(task.function.__module__))


def _is_program(task: Task) -> bool:
    return task.command is not None and bool(task.command.argv)


def _code_of(task: Task) -> dict[str, Any]:
    code: dict[str, Any] = _hashes_of(task)
    if task.seed != "run":
        code["seed"] = task.seed
    if task.files:
        code["files"] = {safe_text(name): data_digest(task, name) for name in task.files}
    return code


def _hashes_of(task: Task) -> dict[str, str | None]:
    if task.command is not None and task.command.argv:
        return {"function": program_digest(task.command), "tree": None}
    return {
        "function": function_digest(task.function),
        "module": module_digest(task.function),
        "tree": top_of(task),
        "in": _module_of(task),
    }


def data_digest(task: Task, name: str) -> str | None:
    """The hash of a data file, named from the folder of the task's module; None if there is none.

    Tasks of programs name it from the folder that the program starts in.
    """
    here = getattr(sys.modules.get(str(task.function.__module__)), "__file__", None)
    folder = Path(here).parent if isinstance(here, str) else Path(_folder_of(task))
    try:
        with (folder / name).open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _folder_of(task: Task) -> str:
    return (None if task.command is None else task.command.cwd) or "."


def memos_of(registry: Registry) -> dict[str, Memo]:
    """For each task that memoizes its results: the hash of its code, and for how long."""
    return {
        task.key: Memo(code, micros(task.memo))
        for task in registry.served
        if task.memo is not None and (code := code_of(task)) is not None
    }


def code_of(task: Task) -> str | None:
    """The hash under which its results are memoized; None if its module cannot be read."""
    return memo_code(function_digest(task.function), module_digest(task.function))


def module_digest(function: Callable[..., Any]) -> str | None:
    """The hash of the file that defines a function; None if there is none."""
    module = sys.modules.get(str(function.__module__))
    file = getattr(module, "__file__", None)
    return _file_digest(file) if isinstance(file, str) else None


@cache
def _file_digest(file: str) -> str | None:
    # Once per process: its code is what it was when it was imported, whatever is in the file later.
    try:
        return sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


def function_digest(function: Callable[..., Any]) -> str:
    """The hash of a function: bytecode, constants, defaults; independent of its position."""
    known = sha256()
    seen: set[int] = set()
    layer: Any = function
    while layer is not None and id(layer) not in seen:
        seen.add(id(layer))
        if getattr(layer, "__globals__", {}).get("__name__") == AROUND:
            layer = (
                layer.__wrapped__
            )  # Hooks are not the task's code; memos must not depend on them.
            continue
        # A callable object runs the `__call__` of its class.
        called = layer if hasattr(layer, "__code__") else type(layer).__call__
        code = getattr(called, "__code__", None)
        if isinstance(code, CodeType):
            known.update(repr(_code(code)).encode())
        for defaults in ("__defaults__", "__kwdefaults__"):
            known.update(repr(_plain(getattr(layer, defaults, None))).encode())
        # A decorator that was made with functools.wraps shows what it wraps.
        layer = getattr(layer, "__wrapped__", None)
    return known.hexdigest()


def _code(code: CodeType) -> tuple[Any, ...]:
    return (
        code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
        code.co_flags, code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames,
        code.co_freevars, code.co_cellvars, _plain(code.co_consts),
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """A value whose repr is the same in every process: no addresses, no order of a set."""
    match value:
        case CodeType():
            return _code(value)
        case tuple() | list():
            return [_plain(part) for part in value]
        case frozenset():
            return sorted(repr(_plain(part)) for part in value)
        case dict():
            return sorted((str(name), repr(_plain(part))) for name, part in value.items())
        case _:
            return value if isinstance(value, _PLAIN) else type(value).__qualname__


def program_digest(command: Command) -> str:
    """The hash of a command line, and of the files it names, unless they are large."""
    known = sha256(repr(command.argv).encode())
    for word in command.argv:
        path = Path(command.cwd or ".", word)
        with contextlib.suppress(OSError, ValueError):
            if path.is_file() and path.stat().st_size <= SCRIPT_MAX:
                known.update(path.read_bytes())
    return known.hexdigest()


def module_files(top: str) -> Iterator[tuple[str, Path]]:
    """The modules of a package that were imported, and their files."""
    for name, module in sorted(sys.modules.items()):
        if name == top or name.startswith(f"{top}."):
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                yield name, Path(file)


def tree_digest(files: dict[str, Path]) -> str:
    """The hash of modules by name and content."""
    known = sha256()
    for name, path in files.items():
        content = b""
        with contextlib.suppress(OSError):
            content = path.read_bytes()
        known.update(f"{name} {sha256(content).hexdigest()}\n".encode())
    return known.hexdigest()


def distributions(folders: Iterable[str]) -> dict[str, str]:
    """Return the packages in these folders with their versions; the first one found counts."""
    found: dict[str, str] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            for entry in sorted(os.listdir(folder or ".")):  # noqa: PTH208 -- names are all we want.
                stem, _, suffix = entry.rpartition(".")
                if suffix in {"dist-info", "egg-info"}:
                    name, _, version = stem.partition("-")
                    name = safe_text(_SEPARATORS.sub("-", name).lower())
                    found.setdefault(name, safe_text(version))
    return dict(sorted(found.items()))


def image_digest() -> str | None:
    """The container image: from BYROTE_IMAGE_DIGEST, or from podman's /run/.containerenv."""
    named = _variable("BYROTE_IMAGE_DIGEST")
    if named:
        return named
    with contextlib.suppress(OSError, UnicodeDecodeError):
        found = _IMAGE.search(Path("/run/.containerenv").read_text(encoding="utf-8"))
        return None if found is None else found.group(1)
    return None


def _variable(name: str) -> str | None:
    """A variable of the environment, in a form that can be stored whatever bytes it holds."""
    value = os.environ.get(name)
    return None if value is None else safe_text(value)


def _libc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None
