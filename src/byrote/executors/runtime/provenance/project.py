# SPDX-License-Identifier: MIT
"""Which modules of the project a task uses, also those it imports only when it is called.

They are found by reading the import statements of the task's module, of the modules it imports, and
so on, if their files belong to the project: neither the standard library, nor installed packages,
nor Byrote. `sys.modules` would not do: a module that a function imports is missing until the
function has run. Modules that are imported by a computed name are not found.
"""

import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

MODULES_MAX = 2_000
"""Modules that are read for all tasks of an app."""
HASH_CHARS = 16
_INSTALLED = {"site-packages", "dist-packages"}
_COMMENT = re.compile(rb"#[^\n]*")
_CONTINUED = re.compile(rb"\\\r?\n")
_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*"
    rb"(?:from(?=[ \t.])[ \t]*(\.*[\w.]*)[ \t]*\bimport\b[ \t]*(\([^)]*\)|[^\n;]+)"
    rb"|import[ \t]+([^\n;]+))",
    re.MULTILINE,
)
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")


class Project:
    """The modules of a project, each read once."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = frozenset(own)
        """Top-level packages that are the project's, wherever they are installed."""
        self._imports: dict[str, list[str]] = {}
        self.hashes: dict[str, str] = {}
        """By name, the hash of the content of every module that was read."""

    def used_by(self, module: str) -> list[str]:
        """The modules of the project that a module uses, itself included, by name."""
        found: set[str] = set()
        left = [module]
        while left:
            name = left.pop()
            if name in found or not self._read(name):
                continue
            found.add(name)
            left += self._imports[name]
        return sorted(found)

    def _read(self, name: str) -> bool:
        if name in self._imports:
            return name in self.hashes
        self._imports[name] = []
        file = None if len(self.hashes) >= MODULES_MAX else self._file_of(name)
        if file is None:
            return False
        try:
            source = file.read_bytes()
        except OSError:
            return False
        self.hashes[name] = sha256(source).hexdigest()[:HASH_CHARS]
        self._imports[name] = list(imported(source, name, package=file.stem == "__init__"))
        return True

    def _file_of(self, name: str) -> Path | None:
        top = name.partition(".")[0]
        if top == "byrote":
            return None
        known = getattr(sys.modules.get(name), "__file__", None)
        paths = [Path(known)] if isinstance(known, str) else _paths_of(name)
        for path in paths:
            if path.suffix == ".py" and path.is_file():
                return path if top in self._own or is_project_file(path) else None
        return None


def _paths_of(name: str) -> Iterator[Path]:
    stem = Path(*name.split("."))
    for entry in sys.path:
        root = Path(entry or ".").absolute()
        yield root / stem.with_suffix(".py")
        yield root / stem / "__init__.py"


def is_project_file(file: Path) -> bool:
    """Whether a file is neither installed nor part of Python."""
    if not _INSTALLED.isdisjoint(file.parts):
        return False
    return not any(file.is_relative_to(folder) for folder in _standard())


@cache
def _standard() -> list[Path]:
    return [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]


def imported(source: bytes, name: str, *, package: bool) -> Iterator[str]:
    """The modules that a source may import, wherever in it, by their full names."""
    for match in _IMPORT.finditer(_CONTINUED.sub(b" ", _COMMENT.sub(b"", source))):
        origin, names, plain = (part.decode("utf-8", "replace") for part in match.groups(b""))
        if plain:
            for part in plain.split(","):
                if found := _NAME.match(part.strip()):
                    yield from _with_parents(found.group())
            continue
        base = _absolute(origin, name, package=package)
        if base is None:
            continue
        yield from _with_parents(base)
        for part in names.strip("() \t").split(","):
            if found := _NAME.match(part.strip()):
                yield f"{base}.{found.group()}" if base else found.group()


def _absolute(origin: str, name: str, *, package: bool) -> str | None:
    """The full module name in `from origin import …`; None above the top level."""
    dots = len(origin) - len(origin.lstrip("."))
    if not dots:
        return origin
    parts = name.split(".")
    up = dots - package
    if up > len(parts):
        return None
    base = parts[: len(parts) - up]
    return ".".join([*base, origin[dots:]] if origin[dots:] else base)


def _with_parents(name: str) -> Iterator[str]:
    parts = [part for part in name.split(".") if part]
    for end in range(1, len(parts) + 1):
        yield ".".join(parts[:end])
