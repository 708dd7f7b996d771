# SPDX-License-Identifier: MIT
"""The pytest plugin in a plain project, where Django cannot be imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BLOCKS_DJANGO = 'import sys\n\nsys.modules["django"] = None\n'
"""A sitecustomize.py, which the processes of xdist import too."""
SHOP = """
from byrote import App, Retry

app = App("postgresql://nobody@127.0.0.1:1/nothing")
sent = []


@app.task(retry=Retry(attempts=2, delay_first="1h"))
def welcome(ctx, name):
    if ctx.attempt == 1:
        raise ConnectionError("busy")
    sent.append(name)
    return len(sent)
"""
TESTS = """
import pytest
import shop
from byrote.testing import assert_enqueued, run_tasks


@pytest.mark.parametrize("number", range(6))
def test_each_test_begins_with_an_empty_database(byrote_app, number):
    shop.sent.clear()
    shop.welcome.enqueue(f"user {number}")
    assert_enqueued(byrote_app, shop.welcome, count=1)
    [run] = run_tasks(byrote_app)
    assert (run.attempts, shop.sent) == (2, [f"user {number}"])
    shop.welcome.using(run_after="1d").enqueue("left behind")


def test_time_is_moved_by_the_test(byrote_app, byrote_clock):
    shop.sent.clear()
    shop.welcome.using(run_after="1d").enqueue("later")
    assert run_tasks(byrote_app) == []
    byrote_clock.advance(days=1)
    run_tasks(byrote_app)
    assert shop.sent == ["later"]


def test_another_app_uses_the_connection(byrote_connection):
    run_tasks(shop.app, connection=byrote_connection)
"""
UNUSED = """
import sys


def test_nothing_was_imported():
    heavy = ("psycopg", "msgspec", "byrote.assembly", "byrote.store", "byrote.testing.clock")
    assert [name for name in heavy if name in sys.modules] == []
"""


def pytest_in(
    folder: Path, tests: str, *options: str, settings: str = ""
) -> subprocess.CompletedProcess[str]:
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(BLOCKS_DJANGO, encoding="utf-8")
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    (folder / "test_shop.py").write_text(tests, encoding="utf-8")
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = .\n{settings}\n", encoding="utf-8")
    hidden = ("PYTEST_", "BYROTE_", "DJANGO_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", *options],
        cwd=folder,
        env=environ | {"PYTHONPATH": str(folder / "site")},
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )


def test_a_plain_project_is_tested_on_a_given_server(tmp_path: Path, server_url: str) -> None:
    settings = f"byrote_app = shop:app\nbyrote_database_url = {server_url}"
    done = pytest_in(tmp_path, TESTS, settings=settings)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


def test_two_processes_of_xdist_share_a_server_of_their_own(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, TESTS, "-n", "2", settings="byrote_app = shop:app")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


def test_a_plugin_that_is_not_used_imports_nothing(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, UNUSED, "-p", "no:xdist")

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("fixture", "message"),
    [
        ("byrote_tasks", "the fixture for a plain app is byrote_app"),
        ("byrote_app", 'byrote_app = "shop.tasks:app"'),
    ],
)
def test_a_fixture_that_cannot_work_reports_why(
    tmp_path: Path, server_url: str, fixture: str, message: str
) -> None:
    test = f"def test_it({fixture}):\n    pass\n"
    done = pytest_in(tmp_path, test, settings=f"byrote_database_url = {server_url}")

    assert done.returncode == 1
    assert message in done.stdout
    assert "Traceback" not in done.stdout
