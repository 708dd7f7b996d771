# SPDX-License-Identifier: MIT
"""`byrote worker --reload` restarts gracefully when code changes."""

import os
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byrote.cli.support.reload import project_files
from byrote.core.state import Status
from tests.cli.console import NOBODY, Process, byrote
from tests.support import run_of, until

Database = psycopg.Connection[Any]

APP = """
import time
from pathlib import Path
from byrote import App
from shop.words import WORD

app = App()

@app.task(name="word")
def word():
    return WORD

@app.task(name="hold")
def hold(folder):
    Path(folder, "begun").touch()
    while not Path(folder, "go").exists():
        time.sleep(0.01)
    return WORD
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A project with a package of two modules."""
    package = tmp_path / "project" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "tasks.py").write_text(APP)
    (package / "words.py").write_text("WORD = 'old'\n")
    return package


def test_a_change_restarts_the_worker_and_a_syntax_error_does_not_end_it(
    url: str, db: Database, package: Path, tmp_path: Path
) -> None:
    code = package / "words.py"
    sent = byrote("enqueue", "hold", f'{{"folder": "{tmp_path}"}}', url=url).out.strip()
    words = ("worker", "shop.tasks:app", "--reload", "--hands", "1")
    with Process(*words, url=url, folder=package.parent) as worker:
        until((tmp_path / "begun").exists, within=60)
        code.write_text("WORD = (\n")
        worker.wrote("WorkerStopping")
        (tmp_path / "go").touch()
        worker.wrote("waiting for a change")
        code.write_text("WORD = 'brand new'\n")
        again = byrote("enqueue", "word", url=url).out.strip()
        until(lambda: run_of(db, again).status is Status.SUCCESSFUL, within=60)
        worker.signal(signal.SIGTERM)
        ended = worker.ended()
    held = run_of(db, sent)

    assert ended.code == 0
    assert (held.result, held.attempts, held.status) == ("old", 1, Status.SUCCESSFUL)
    assert run_of(db, again).result == "brand new"
    assert "SyntaxError" in ended.err
    assert ended.err.count("code has changed, restarting") == 2


def test_reload_and_drain_exclude_each_other(package: Path) -> None:
    done = byrote("worker", "shop.tasks:app", "--reload", "--drain", url=NOBODY)

    assert done.code == 2
    assert "leave one of them out" in done.err


def test_installed_packages_and_environments_are_not_watched(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = package.parent
    for name in (".venv/lib", "env/lib", "node_modules/x", "tools"):
        (project / name).mkdir(parents=True)
        (project / name / "code.py").touch()
    (project / "env" / "pyvenv.cfg").touch()
    other = project.parent / "other"
    other.mkdir()
    (other / "more.py").touch()
    monkeypatch.chdir(project)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(other), ""]))
    found = sorted(os.path.relpath(path) for path in project_files("shop.tasks:app"))

    assert found == [
        "../other/more.py", "shop/__init__.py", "shop/tasks.py", "shop/words.py", "tools/code.py",
    ]  # fmt: skip
