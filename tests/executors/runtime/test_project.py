# SPDX-License-Identifier: MIT
"""Provenance sees what a task uses: helpers anywhere in the project, data files, its repository."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from byrote.core.replay.provenance import provenance_diff
from byrote.executors.runtime.provenance.project import imported

SHOP = """
import json
from byrote import App
import helpers
from pack.tools import (
    first,
    second,
)

app = App()


@app.task(files=["rates.csv", "absent.csv"])
def price(net):
    from lazy import later
    return later(net)


@app.task
def other():
    return 1
"""
MEASURE = """
import sys, msgspec
from pathlib import Path
from byrote.executors.runtime.provenance.git import GitCheckout
from byrote.executors.runtime.loading import load_app
from byrote.executors.runtime.provenance.environment import measure

checkout = GitCheckout(Path.cwd())
app = load_app("shop:app")
sys.stdout.buffer.write(msgspec.json.encode(measure(app.registry, checkout)))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "code"
    (root / "pack").mkdir(parents=True)
    (root / "shop.py").write_text(SHOP)
    (root / "helpers.py").write_text("RATE = 19\n")
    (root / "lazy.py").write_text("import deeper\n\ndef later(net):\n    return net\n")
    (root / "deeper.py").write_text("DEEP = 1\n")
    (root / "unused.py").write_text("X = 1\n")
    (root / "pack" / "__init__.py").write_text("")
    (root / "pack" / "tools.py").write_text("from . import inner\nfirst = second = 1\n")
    (root / "pack" / "inner.py").write_text("Y = 1\n")
    (root / "rates.csv").write_text("DE,19\n")
    return root


def measured(root: Path, folder: Path | None = None) -> dict[str, Any]:
    told = subprocess.run(
        [sys.executable, "-c", MEASURE],
        cwd=folder or root,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
    )
    return msgspec.json.decode(told.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("helpers.py", "/code/modules/helpers"),
        ("lazy.py", "/code/modules/lazy"),
        ("deeper.py", "/code/modules/deeper"),
        ("pack/inner.py", "/code/modules/pack.inner"),
        ("rates.csv", "/code/files/rates.csv"),
        ("unused.py", None),
    ],
)
def test_a_change_of_what_a_task_uses_is_named(project: Path, file: str, path: str | None) -> None:
    before = measured(project)
    with (project / file).open("a") as changed:
        changed.write("# changed\n")
    found = provenance_diff(before, measured(project), task="price@1")

    assert [change.path for change in found.changes] == ([] if path is None else [path])


def test_the_repository_is_that_of_the_code_and_not_of_the_current_folder(
    project: Path, tmp_path: Path
) -> None:
    assert measured(project)["vcs"] is None
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"),
    ):
        subprocess.run(["git", "-C", str(project), *words], check=True)
    (tmp_path / "elsewhere").mkdir()
    inside, outside = measured(project), measured(project, tmp_path / "elsewhere")

    assert inside["vcs"]["commit"]
    assert outside["vcs"] == inside["vcs"]
    assert outside["vcs"]["dirty"] is False


def test_imports_are_read_wherever_they_stand() -> None:
    source = b"""
import a, b.c as d  # e
from f import (
    g as h,
    i,
)
def x():
    from .j import k
    from .. import l
"""
    found = set(imported(source, "p.q.r", package=False))

    assert found >= {"a", "b", "b.c", "f", "f.g", "f.i", "p.q.j", "p.q.j.k", "p.l"}
    assert not found & {"d", "e", "h"}
    assert "p.q.r.j" in set(imported(source, "p.q.r", package=True))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from f import (\n  g,  # the first\n  h,  # the last (of two)\n  i,\n)", "f.g f.h f.i"),
        ("from f import g, \\\n    h", "f.g f.h"),
        ("import a, \\\r\n    b.c", "a b b.c"),
        ("x = 1; import a; from b import c", "a b b.c"),
        ("try: import a\nexcept ImportError: import b", "a b"),
        ("if x: from a import b", "a a.b"),
        ("from f import(g)", "f f.g"),
        ("from .import g", "p.g"),
        ("from . import g", "p.g"),
        ("from a import*", "a"),
        ("fromage = 1\nimportant = 2", ""),
    ],
)
def test_imports_are_read_however_they_are_written(source: str, names: str) -> None:
    found = set(imported(source.encode(), "p.q", package=False))

    assert found >= set(names.split())
    assert names or not found
