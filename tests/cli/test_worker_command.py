# SPDX-License-Identifier: MIT
import json
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from byrote.core.state import Status
from byrote.embedded import control
from tests.cli.console import NOBODY, Process, byrote
from tests.support import run_of, until

Database = psycopg.Connection[Any]

APP = """
import os, threading, time
from byrote import App

app = App()

@app.task
def add(a, b):
    return a + b

@app.task
def boom(word):
    raise ValueError(word)

@app.task
def stuck():
    threading.Event().wait()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a small app."""
    (tmp_path / "shop.py").write_text(APP)
    return tmp_path


def events(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def test_a_draining_worker_does_what_there_is_and_leaves(
    url: str, db: Database, folder: Path
) -> None:
    ran = byrote("enqueue", "add", '{"a": 1, "b": 2}', url=url).out.strip()
    with Process("worker", "shop:app", "--drain", "--hands", "1", url=url, folder=folder) as worker:
        said = worker.ended()
    told = [event["event"] for event in events(worker.err)]

    assert (said.code, said.out) == (0, "")
    assert run_of(db, ran).result == 3
    assert [told.count(name) for name in ("Claimed", "Succeeded", "WorkerStopped")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("words", "paused", "left"),
    [
        (["chrage"], [], "1 ready run is of tasks or versions that this worker does not know"),
        (["add", "--version", "2"], [], "that this worker does not know: add@2"),
        (["add", '{"a": 1, "b": 2}'], ["queues", "pause", "default"], "in paused queues"),
    ],
)
def test_a_drain_that_left_runs_it_cannot_execute_exits_with_5(
    url: str, folder: Path, *, words: list[str], paused: list[str], left: str
) -> None:
    byrote("enqueue", *words, url=url)
    if paused:
        byrote(*paused, url=url)
    with Process("worker", "shop:app", "--drain", "--hands", "1", url=url, folder=folder) as worker:
        said = worker.ended()

    assert said.code == 5
    assert "byrote: Drained, but runs were left: no run is left that this worker" in said.err
    assert left in said.err


def test_a_drain_that_left_only_runs_that_are_not_due_exits_with_0(url: str, folder: Path) -> None:
    byrote("enqueue", "add", "--after", "1h", url=url)
    with Process("worker", "shop:app", "--drain", "--hands", "1", url=url, folder=folder) as worker:
        said = worker.ended()

    assert said.code == 0
    assert "nothing left to do; 1 run is not due" in said.err


def test_messages_of_errors_can_be_kept_out_of_the_log(url: str, folder: Path) -> None:
    byrote("enqueue", "boom", '{"word": "hushhush"}', url=url)
    words = ("worker", "shop:app", "--drain", "--hands", "1", "--log-level", "debug")
    hidden = {"BYROTE_LOG_TRACEBACKS": "no"}
    with Process(*words, url=url, folder=folder, **hidden) as worker:
        said = worker.ended()

    assert '"event":"Failed"' in said.err
    assert "hushhush" not in said.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_in_order(url: str, folder: Path, number: signal.Signals) -> None:
    with Process("worker", "shop:app", "--hands", "1", url=url, folder=folder) as worker:
        worker.wrote("WorkerStarted")
        worker.signal(number)
        said = worker.ended()
    [stopping] = [event for event in events(worker.err) if event["event"] == "WorkerStopping"]

    assert said.code == 0
    assert stopping["reason"] == number.name


def test_a_second_signal_releases_every_run_at_once(url: str, db: Database, folder: Path) -> None:
    ran = byrote("enqueue", "stuck", url=url).out.strip()
    words = ("worker", "shop:app", "--hands", "1", "--grace", "10m")
    with Process(*words, url=url, folder=folder) as worker:
        until(lambda: run_of(db, ran).status is Status.RUNNING)
        worker.signal(signal.SIGTERM)
        worker.wrote("WorkerStopping")
        worker.signal(signal.SIGTERM)
        said = worker.ended(within=30)
    run = run_of(db, ran)
    [stopping, stopped] = [e for e in events(worker.err) if e["event"].startswith("WorkerStopp")]

    assert said.code == 0
    assert (run.status, run.charged) == (Status.READY, 0)
    assert stopping["running"] == 1
    assert stopping["note"] == (
        "waiting up to 600 s for 1 run; a second signal returns unfinished runs to the queue"
    )
    assert (stopped["finished"], stopped["released"]) == (0, 1)


def test_sigusr1_prints_the_stacks_and_the_worker_goes_on(
    url: str, db: Database, folder: Path
) -> None:
    with Process("worker", "shop:app", "--hands", "1", url=url, folder=folder) as worker:
        worker.wrote("WorkerStarted")
        worker.signal(signal.SIGUSR1)
        worker.wrote("Thread MainThread")
        ran = byrote("enqueue", "add", '{"a": 1, "b": 2}', url=url).out.strip()
        until(lambda: run_of(db, ran).finished)
        worker.signal(signal.SIGTERM)
        said = worker.ended()

    assert said.code == 0
    assert "worker.py" in said.err


def test_text_is_logged_where_it_is_asked_for(url: str, folder: Path) -> None:
    words = ("worker", "shop:app", "--drain", "--executor", "inline", "--log-format", "text")
    with Process(*words, url=url, folder=folder) as worker:
        said = worker.ended()

    assert said.code == 0
    assert " WorkerStarted " in said.err
    assert "{" not in said.err


def test_an_unused_queue_is_mentioned_and_served(url: str, db: Database, folder: Path) -> None:
    byrote("enqueue", "add", '{"a": 1, "b": 2}', "--queue", "fresh", url=url)
    words = ("worker", "shop:app", "--drain", "--hands", "1", "--queues", "fresh=2,other")
    with Process(*words, url=url, folder=folder) as worker:
        said = worker.ended()

    assert said.code == 0
    assert "queue other is new to this database" in said.err
    assert '"event":"Succeeded"' in said.err


def test_a_database_that_is_down_at_the_start_is_75_and_its_address_is_printed(
    folder: Path,
) -> None:
    words = ("worker", "shop:app", "--hands", "1", "--url", NOBODY)
    with Process(*words, folder=folder) as worker:
        said = worker.ended()

    assert said.code == 75
    assert "PostgreSQL at 127.0.0.1:1/nothing did not answer" in said.err


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"dbname": "missing_shop"}, "`createdb missing_shop`"),
        ({"user": "nobody_known"}, "`createuser nobody_known`"),
    ],
)
def test_a_refused_login_is_permanent_and_comes_first(
    url: str, folder: Path, changed: dict[str, str], advice: str
) -> None:
    where = make_conninfo(url, **changed)
    with Process("worker", "shop:app", "--hands", "2", "--url", where, folder=folder) as worker:
        said = worker.ended()

    assert said.code == 1
    assert advice in said.err
    assert len(said.err.splitlines()) == 1


def test_an_app_that_names_a_missing_database_logs_only_that(url: str, tmp_path: Path) -> None:
    named = make_conninfo(url, dbname="missing_shop")
    (tmp_path / "shop.py").write_text(APP.replace("App()", f"App({named!r})"))
    with Process("worker", "shop:app", "--hands", "2", folder=tmp_path) as worker:
        said = worker.ended()

    assert said.code == 1
    assert "`createdb missing_shop`" in said.err
    assert len(said.err.splitlines()) == 1


def test_an_import_error_is_printed_once_for_all_hands(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import no_such_package\n")
    with Process("worker", "shop:app", "--hands", "3", url=url, folder=tmp_path) as worker:
        said = worker.ended()

    assert said.code == 2
    assert said.err.count("Traceback") == 1
    assert said.err.count("byrote: Importing shop:app raised ModuleNotFoundError") == 1
    assert "HandEnded" not in said.err


def test_a_hand_that_dies_at_the_start_is_named_with_its_reason(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import os\nos._exit(7)\n")
    with Process("worker", "shop:app", "--hands", "1", url=url, folder=tmp_path) as worker:
        said = worker.ended()

    assert said.code == 2
    assert said.err == "byrote: A hand exited with code 7 before it was ready.\n"


def test_a_schema_that_is_behind_is_3_and_names_the_command(bare_url: str, folder: Path) -> None:
    words = ("worker", "shop:app", "--hands", "1", "--queues", "default")
    with Process(*words, url=bare_url, folder=folder) as worker:
        said = worker.ended()

    assert said.code == 3
    assert "Run `byrote migrate`" in said.err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("nowhere:app",), "nowhere"),
        (("shop:nothing",), "did you mean shop:app?"),
        (("shop:app", "--lease", "soon"), "--lease: "),
        (("shop:app", "--queues", "a=0"), "weight"),
        (("shop:app", "--hands", "0"), "x>=1"),
        (("shop:app", "--max-rss", "much"), "512MB"),
    ],
)
def test_bad_input_is_wrong_usage(
    url: str, folder: Path, words: tuple[str, ...], advice: str
) -> None:
    with Process("worker", *words, url=url, folder=folder) as worker:
        said = worker.ended()

    assert said.code == 2
    assert advice in said.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_exit_code_of_a_command_shows_its_signal(
    url: str, folder: Path, number: signal.Signals
) -> None:
    with Process("enqueue", "t", "--wait", url=url, folder=folder) as command:
        until(lambda: command.out)
        command.signal(number)
        said = command.ended()

    assert said.code == 128 + number
    assert "Traceback" not in said.err


@pytest.fixture
def home() -> Iterator[Path]:
    """A home for an embedded server, below no private directory."""
    path = Path(tempfile.mkdtemp(prefix="byrote-cli-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.xdist_group("embedded")
def test_without_any_database_the_embedded_one_is_made_used_and_stopped(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"BYROTE_PG_HOME": str(home)}
    monkeypatch.chdir(folder)  # The project whose database it is.
    ran = byrote("enqueue", "add", '{"a": 1, "b": 2}', **env).out.strip()
    with Process("worker", "shop:app", "--drain", "--hands", "1", folder=folder, **env) as worker:
        said = worker.ended()
    shown = byrote("runs", "show", ran, "--json", **env).object

    assert said.code == 0
    assert (shown["status"], shown["result"]) == ("SUCCESSFUL", 3)
    assert control.status(home).state == "stopped"
