# SPDX-License-Identifier: MIT
"""The path of a run in ARCHITECTURE.md names files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "byrote"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\|[^|]*\| `([\w/]+\.(?:py|sql))(?::([\w.]+))?` \|$", TEXT, re.MULTILINE)
FILES_MAX = 30


def names_in(path: Path) -> set[str]:
    """The functions, classes and methods of a module, methods as `Class.method`."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if hasattr(part, "name")}
    return names


@pytest.mark.parametrize(("file", "function"), STEPS)
def test_each_step_of_the_path_exists(file: str, function: str) -> None:
    path = SOURCE / file

    assert path.is_file()
    assert not function or function in names_in(path)


def test_a_run_is_followed_in_few_files() -> None:
    files = {file for file, _ in STEPS}

    assert len(files) <= FILES_MAX
    assert f"Read these {len(files)} files in this order" in TEXT
    assert f"so there are {len(STEPS)} steps." in TEXT


def test_files_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|sql))`", TEXT))
    service = {name for name in named if (SOURCE / "service" / name).is_file()}
    elsewhere = {name for name in named if (ROOT / name).is_file()}

    assert {name for name in named - service - elsewhere if not (SOURCE / name).is_file()} == set()
