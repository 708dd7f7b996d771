# SPDX-License-Identifier: MIT
import signal
from pathlib import Path

from byrote.core.policy import Retry
from byrote.testing import FakeClock
from tests.cli.console import Process, byrote
from tests.support import Db, claim, enqueue, finish, success, verdict


def test_a_run_is_shown_as_it_was(url: str, db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    clock.advance(seconds=10)
    [lease] = claim(db)
    clock.advance(seconds=10)
    finish(db, [success(lease, "42")])
    then = clock.now.isoformat()

    def status(at: str) -> object:
        told = byrote("runs", "show", run_id, "--json", "--at", at, url=url).object
        return told["status"], told["result"], told["attempts"]

    assert status("2026-11-15 12:00:05") == ("READY", None, 0)
    assert status("2026-11-15T12:00:15Z") == ("RUNNING", None, 1)
    assert status(then) == ("SUCCESSFUL", 42, 1)
    before = byrote("runs", "show", run_id, "--at", "2026-11-15 11:00", url=url)
    assert before.code == 4
    assert "it was not accepted yet" in before.err


def test_a_history_lists_every_move_of_a_run(url: str, db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=2))
    [lease] = claim(db, worker="w-7")
    finish(db, [verdict(lease, "R", delay_us=60_000_000)])
    lines = byrote("runs", "history", run_id, url=url).out.splitlines()
    steps = byrote("runs", "history", run_id[:13], "--json", url=url).objects

    assert [line.split()[2:3] for line in lines[1:]] == [["Enqueued"], ["Claimed"], ["Retried"]]
    assert "w-7" in lines[2]
    assert "ValueError, retry until 2026-11-15T12:01:00Z" in lines[3]
    assert [step["then"]["status"] for step in steps] == ["READY", "RUNNING", "WAITING"]


def test_queues_and_workers_are_shown_as_they_were(url: str, db: Db, clock: FakeClock) -> None:
    enqueue(db, 3, queue="mail")
    clock.advance(minutes=1)
    leases = claim(db, 2, queues=["mail"], worker="w-7")
    clock.advance(minutes=1)
    finish(db, [success(lease) for lease in leases])
    at = ("--at", "2026-11-15 12:01:30")
    [queue] = byrote("queues", *at, "--json", url=url).objects
    [worker] = byrote("workers", *at, "--json", url=url).objects

    assert (queue["ready"], queue["running"], queue["run_by"]) == (1, 2, {"w-7": 2})
    assert queue["oldest_ready_s"] == 90
    assert (worker["worker"], worker["running"], worker["claimed"]) == ("w-7", 2, 2)
    assert "w-7: 2" in byrote("queues", *at, url=url).out
    assert "w-7" in byrote("workers", *at, url=url).out


def test_a_moment_that_cannot_be_read_is_refused_with_an_example(url: str) -> None:
    said = byrote("queues", "--at", "yesterday", url=url)

    assert said.code == 2
    assert "2026-11-10 17:00" in said.err


def test_events_go_on_after_a_cursor(url: str, db: Db) -> None:
    [first] = enqueue(db)
    [cursor] = [event["cursor"] for event in byrote("events", "--json", url=url).objects]
    enqueue(db, 2)
    [event] = byrote("events", "--after", cursor, "--json", url=url).objects
    every = byrote("events", "--after", "0", url=url).out.splitlines()

    assert (event["kind"], len(event["runs"])) == ("Enqueued", 2)
    assert len(every) == 2
    assert first in every[0]
    assert len(byrote("events", "--last", "1", url=url).out.splitlines()) == 1
    assert byrote("events", "--run", first, "--json", url=url).objects[0]["runs"][0]["id"] == first
    refused = byrote("events", "--after", "x", url=url)
    assert (refused.code, "such as 4711.812" in refused.err) == (2, True)


def test_events_are_followed_until_interrupted(url: str, db: Db, tmp_path: Path) -> None:
    with Process("events", "--follow", url=url, folder=tmp_path) as following:
        enqueue(db)
        following.wrote("Enqueued")
        claim(db)
        following.wrote("Claimed")
        following.signal(signal.SIGINT)

        assert following.ended().code == 130


def test_a_queue_can_log_fewer_events(url: str, db: Db) -> None:
    enqueue(db, queue="mail")
    said = byrote("queues", "events", "mail", "few", url=url)

    assert said.out == "mail now logs fewer kinds of events.\n"
    row = db.execute("select events, quiet_since is not null from byrote_queues").fetchone()
    assert row == ("few", True)
    assert byrote("queues", "events", "mial", "few", url=url).code == 4
