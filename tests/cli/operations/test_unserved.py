# SPDX-License-Identifier: MIT
"""The command line's reports of runs that no live worker can execute."""

import pytest

from byrote import App, ResultTimeout
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import byrote
from tests.support import Db, enqueue, register


@pytest.fixture
def lonely(db: Db) -> str:
    """A run of a version that the one worker of its queue does not know."""
    [run_id] = enqueue(db, task="t", version=2)
    register(db, "w", "default")
    fetch(db, queries.note_unserved())
    return run_id


@pytest.mark.usefixtures("lonely")
def test_doctor_names_the_task_and_the_nearest_known_one(url: str) -> None:
    said = byrote("doctor", url=url)

    assert "no live worker knows t@2 in default; the nearest that is known is t@1" in said.out
    assert "It ends FAILED (unknown_task) once that has been so for 1d." in said.out


@pytest.mark.usefixtures("lonely")
def test_queues_names_the_task(url: str) -> None:
    said = byrote("queues", url=url)
    [queue] = byrote("queues", "--json", url=url).objects

    assert "default: no live worker knows t@2; the nearest that is known is t@1." in said.out
    assert queue["unserved"] == ["t@2"]


def test_a_run_shows_why_it_is_not_running(url: str, lonely: str) -> None:
    said = byrote("runs", "show", lonely, url=url)
    told = byrote("runs", "show", lonely, "--json", url=url).object

    assert "No live worker of the queue default knows t@2" in said.out
    assert told["why"].startswith("No live worker of the queue default knows t@2")


def test_who_waits_for_a_result_learns_why_there_is_none(app: App, lonely: str) -> None:
    with pytest.raises(ResultTimeout) as late:
        app.run(lonely).result(0.01)

    assert "is still READY after 0.01 s. No live worker of the queue" in str(late.value)


def test_enqueue_with_wait_reports_that_no_worker_serves_the_queue(url: str) -> None:
    said = byrote("enqueue", "t", "--queue", "nowhere", "--wait", "50ms", url=url)

    assert said.code == 1
    assert "No live worker serves the queue nowhere." in said.err


@pytest.mark.usefixtures("lonely")
def test_how_long_a_queue_waits_is_set(url: str, db: Db) -> None:
    stored = "select unserved_for::text from byrote_queues where queue_name = 'default'"
    said = byrote("queues", "unserved", "default", "2h", url=url)
    assert "It ends FAILED (unknown_task) once that has been so for 2h." in said.out
    assert db.execute(stored).fetchone() == ("02:00:00",)
    assert "for ever" in byrote("queues", "unserved", "default", "never", url=url).out

    assert db.execute(stored).fetchone() == (None,)
    assert "waits for ever" in byrote("queues", url=url).out
    assert byrote("queues", "unserved", "default", "1s", url=url).code == 2
    assert byrote("queues", "unserved", "typo", "1h", url=url).code == 4
