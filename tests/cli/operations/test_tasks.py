# SPDX-License-Identifier: MIT
"""`byrote tasks` lists what an app can execute, without a database."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.console import NOBODY, byrote

APP = """
from byrote import App, Retry

app = App(include=["bazaar.mail"])

@app.task(name="add", queue="sums", timeout="30s", retry=Retry(attempts=3, delay_first="2s"))
def add(a, b=1):
    return a + b

app.schedule("nightly", add.spec(1), every="1d")
app.command("render", ["cat"])
"""
MAIL = """
from byrote import TaskGroup
from bazaar.app import app

mail = TaskGroup(prefix="mail.", queue="mail")

@mail.task(version=2)
async def send(to):
    return to

app.add(mail)
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with an app and a module that it includes."""
    package = tmp_path / "bazaar"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "app.py").write_text(APP)
    (package / "mail.py").write_text(MAIL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in [name for name in sys.modules if name.split(".")[0] == "bazaar"]:
        del sys.modules[name]


def test_the_tasks_of_an_app_and_its_included_modules_are_listed() -> None:
    done = byrote("tasks", "bazaar.app:app", url=NOBODY)

    assert done.code == 0
    assert done.out.splitlines() == [
        "TASK       VERSION  QUEUE    KIND     RETRY                            TIMEOUT  SCHEDULES",
        "add              1  sums     sync     3 attempts, exponential from 2s  30s      nightly",
        "mail.send        2  mail     async",
        "render           1  default  command",
    ]


def test_json_has_one_task_per_line() -> None:
    found = byrote("tasks", "bazaar.app:app", "--json", url=NOBODY).objects

    assert [task["task"] for task in found] == ["add", "mail.send", "render"]
    assert found[0] == {
        "task": "add", "version": 1, "queue": "sums", "kind": "sync", "max_attempts": 3,
        "retry": "3 attempts, exponential from 2s", "timeout": 30.0, "priority": 0,
        "schedules": ["nightly"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("bazar.app:app", "Did you mean bazaar.app:app?"),
        ("bazaar.ap:app", "Did you mean bazaar.app:app?"),
        ("bazaar.app:ap", "did you mean bazaar.app:app?"),
        ("bazaar/app.py:app", "write bazaar.app:app"),
    ],
)
def test_a_wrong_app_is_refused_with_the_nearest_one(path: str, advice: str) -> None:
    done = byrote("tasks", path, url=NOBODY)

    assert done.code == 2
    assert advice in done.err


def test_an_included_module_that_is_missing_is_named(project: Path) -> None:
    (project / "app.py").write_text(APP.replace("bazaar.mail", "bazaar.mial"))
    done = byrote("tasks", "bazaar.app:app", url=NOBODY)

    assert done.code == 2
    assert "includes the module 'bazaar.mial'" in done.err
    assert "Did you mean bazaar.mail?" in done.err
