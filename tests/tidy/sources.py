# SPDX-License-Identifier: MIT
"""What the tidy tests look at: our own files, parsed."""

import ast
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "byrote"
OURS = ("src", "tests", "bench", "examples")


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that is in the repository or would be added to it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:  # A source archive has no history: look at the folders instead.
        return tuple(path for top in OURS for path in (ROOT / top).rglob("*") if path.is_file())
    found = (ROOT / name for name in done.stdout.decode().split("\0") if name)
    return tuple(path for path in found if path.is_file())


def python_files(*tops: str) -> list[Path]:
    """Our Python files below these folders."""
    wanted = [ROOT / top for top in tops]
    return [p for p in tracked() if p.suffix == ".py" and any(p.is_relative_to(w) for w in wanted)]


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def faults(paths: Iterable[Path], look: Callable[[Path], object]) -> dict[str, object]:
    """What a look at each file finds, by file; nothing is well."""
    found = {name_of(path): look(path) for path in paths}
    return {name: fault for name, fault in found.items() if fault}


def name_of(path: Path) -> str:
    """How a file is named in messages and test ids."""
    return path.relative_to(ROOT).as_posix()
