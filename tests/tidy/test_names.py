# SPDX-License-Identifier: MIT
"""Folders teach the architecture, and a name means one thing."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

from tests.tidy.sources import SOURCE, parsed, python_files, tracked

FILES_MAX = 16
"""Modules or statements of one folder, besides `__init__.py`."""

MIRRORS = {
    # What the service and its clients exchange has the names of what it stands for.
    *["Output", "Provenance", "Release", "Snooze", "Step", "UniqueKey", "Verdict"],
    # Models of Django have the names of what their tables hold.
    *["Artifact", "Depth", "Event", "Memo", "Progress", "Run", "RunEvent", "Token"],
    *["UnservedTask", "Worker"],
    # An event has the name of the outcome that it reports.
    *["Cancelled", "Crashed", "Failed", "Released", "Snoozed", "Succeeded"],
    # Names that Django requires for migrations and commands; `byrote.django.Task` is public.
    *["Command", "Migration", "Task"],
}
"""Names that stand for one idea on two sides. Anything else that occurs twice is two ideas."""


def test_no_folder_has_more_than_sixteen_files() -> None:
    files = [path for path in tracked() if path.is_relative_to(SOURCE)]
    code = [p for p in files if p.suffix in {".py", ".sql"} and p.name != "__init__.py"]
    crowded = Counter(p.parent.relative_to(SOURCE).as_posix() for p in code)

    assert {folder: n for folder, n in crowded.items() if n > FILES_MAX} == {}


def public_types(path: Path) -> list[str]:
    """The classes and type aliases that a module defines for others."""
    found = []
    for node in parsed(path).body:
        match node:
            case ast.ClassDef(name=name) | ast.TypeAlias(name=ast.Name(id=name)):
                found.append(name)
    return [name for name in found if not name.startswith("_")]


def test_no_public_type_has_the_name_of_another() -> None:
    homes = defaultdict(list)
    for path in python_files("src"):
        for name in public_types(path):
            homes[name].append(path.relative_to(SOURCE).as_posix())
    twice = {name: paths for name, paths in homes.items() if len(paths) > 1}

    assert {name: paths for name, paths in twice.items() if name not in MIRRORS} == {}
    assert MIRRORS - twice.keys() == set()
