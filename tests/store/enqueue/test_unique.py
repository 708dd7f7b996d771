# SPDX-License-Identifier: MIT
"""Unique keys: one unfinished run for each, from any sender, and free again with its end."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.errors import KeyContended
from byrote.core.policy import LOSSES_MAX, Retry
from byrote.core.ports.script import run_script
from byrote.core.spec import Delivery, Spec, describe
from byrote.core.state import Status
from byrote.store import bulk, queries
from byrote.store.connect import DatabaseAddress
from byrote.store.queries import EnqueuedRow, again, enqueue_unique, until_accepted
from byrote.store.queries.enqueue import TRIES_MAX
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.testing import FakeClock
from tests.support import (
    LEASE,
    Db,
    claim,
    count,
    finish,
    history,
    row_of,
    run_of,
    success,
    until,
    verdict,
    waits_for_a_lock,
)

ROOT = Path(__file__).parents[3]


def spec(key: str | None = "k", task: str = "t", version: int = 1, **delivery: Any) -> Spec:
    return describe(task, version, [], {}, delivery=Delivery(unique_key=key, **delivery))


def send(db: Db, *specs: Spec) -> list[tuple[str, bool]]:
    """Enqueue a batch; each run's id, and whether it was made."""
    sent = [(new_id(), each) for each in specs]
    accepted = run_script(until_accepted(enqueue_unique(sent)), partial(fetch, db))
    return [
        (accepted.instead.get(run_id, run_id), run_id not in accepted.instead) for run_id, _ in sent
    ]


def one(db: Db, key: str = "k", **delivery: Any) -> tuple[str, bool]:
    [given] = send(db, spec(key, **delivery))
    return given


def end(db: Db, letter: str) -> None:
    [lease] = claim(db)
    said = success(lease) if letter == "S" else verdict(lease, letter)
    assert finish(db, [said]) == [lease.id]


def test_a_second_run_with_a_key_is_the_first(db: Db) -> None:
    first, made = one(db, priority=3, labels={"a": "b"})
    second = one(db, queue="other", run_after="1h")
    run = run_of(db, first)

    assert (made, second) == (True, (first, False))
    assert (run.unique_key, run.queue, run.priority, run.labels) == ("k", "default", 3, {"a": "b"})
    assert (count(db, "byrote_runs"), count(db, "byrote_events")) == (1, 1)
    assert history(db, first) == ["Enqueued"]


@pytest.mark.parametrize("status", ["WAITING", "READY", "RUNNING"])
def test_a_key_is_held_in_every_unfinished_state(db: Db, status: str) -> None:
    first, _ = one(db, run_after="1h" if status == "WAITING" else None)
    if status == "RUNNING":
        claim(db)

    assert run_of(db, first).status == status
    assert one(db) == (first, False)


@pytest.mark.parametrize("letter", ["S", "F", "C"])
def test_a_key_is_free_again_when_its_run_has_ended(db: Db, letter: str) -> None:
    first, _ = one(db)
    end(db, letter)
    second, made = one(db)

    assert made
    assert second != first
    assert run_of(db, first).unique_key == run_of(db, second).unique_key == "k"


def test_a_key_is_free_again_when_its_run_is_cancelled_or_lost_for_good(
    db: Db, clock: FakeClock
) -> None:
    first, _ = one(db)
    fetch(db, queries.cancel([first]))
    second, made = one(db)
    assert made
    for _ in range(LOSSES_MAX):
        claim(db)
        clock.advance(seconds=LEASE.total_seconds() + 1)
        assert one(db) == (second, False)
        fetch(db, queries.sweep())

    assert run_of(db, second).status is Status.FAILED
    assert row_of(db, second)["unique_key"] == "k"
    assert one(db)[1]


@pytest.mark.parametrize("letter", ["R", "Z", "L", "X"])
def test_a_run_that_comes_back_by_itself_keeps_its_key(db: Db, letter: str) -> None:
    first, _ = one(db, retry=Retry(attempts=5))
    [lease] = claim(db)
    finish(db, [verdict(lease, letter, delay_us=1_000_000 if letter in "RZ" else 0)])

    assert run_of(db, first).status in {Status.WAITING, Status.READY}
    assert one(db) == (first, False)


def test_a_key_belongs_to_the_name_of_a_task_whatever_its_version(db: Db) -> None:
    (first, _), (other, made) = send(db, spec(), spec(task="u"))

    assert made
    assert send(db, spec(version=2), spec(task="u", version=7)) == [(first, False), (other, False)]


def test_keys_differ_by_every_letter(db: Db) -> None:
    assert all(made for _, made in send(db, *map(spec, ["k", "K", "k ", " k", "ḱ", "k:1"])))


def test_a_batch_may_mix_runs_with_and_without_keys_and_has_each_key_once(
    db: Db, address: DatabaseAddress
) -> None:
    taken, _ = one(db, "taken")
    batch = [spec("b"), spec(None), spec("taken"), spec("a"), spec("b"), spec(None), spec("a")]
    given = send(db, *batch)

    assert [made for _, made in given] == [True, True, False, True, False, True, False]
    assert (given[2][0], given[4][0], given[6][0]) == (taken, given[0][0], given[3][0])
    assert len({run_id for run_id, _ in given}) == 5
    assert [lease.id for lease in claim(db, 9)] == [taken, *(i for i, made in given if made)]
    assert verify(address).sound


def test_a_batch_over_several_statements_has_each_key_once(db: Db) -> None:
    sent = [(new_id(), spec(None if n % 3 else "k")) for n in range(2 * bulk.BATCH + 10)]
    instead = bulk.enqueue_all(db, bulk.batches(sent))

    assert set(instead.values()) == {sent[0][0]}
    assert count(db, "byrote_runs") == len(sent) - len(instead)
    assert len(instead) == len(sent[::3]) - 1


def test_a_statement_that_was_sent_before_makes_nothing_twice(db: Db) -> None:
    """Its answer was lost: in the meantime one has ended, and one is held by another."""
    taken, _ = one(db, "taken")
    sent = [(new_id(), each) for each in (spec("a"), spec("taken"), spec(None), spec("a"))]
    query = enqueue_unique(sent)
    lost = run_script(until_accepted(query), partial(fetch, db))
    fetch(db, queries.cancel([sent[0][0]]))
    found = run_script(until_accepted(again(query)), partial(fetch, db))

    assert (lost.landed, found.landed) == (False, True)
    assert found.instead == lost.instead == {sent[1][0]: taken, sent[3][0]: sent[0][0]}
    assert count(db, "byrote_runs") == 3


def test_a_statement_that_never_arrived_is_made_when_it_is_sent_again(db: Db) -> None:
    sent = [(new_id(), spec("a")), (new_id(), spec(None))]
    accepted = run_script(until_accepted(again(enqueue_unique(sent))), partial(fetch, db))

    assert (accepted.instead, accepted.landed) == ({}, False)
    assert count(db, "byrote_runs") == 2


def test_an_id_that_is_sent_twice_as_if_it_were_new_is_refused(db: Db) -> None:
    query = enqueue_unique([(new_id(), spec("a"))])
    fetch(db, query)
    end(db, "S")

    with pytest.raises(psycopg.errors.UniqueViolation, match="pkey"):
        fetch(db, query)


# -- Others at the same time -----------------------------------------------------------------------


@pytest.mark.parametrize("commits", [True, False])
def test_a_second_enqueue_waits_for_the_outcome_of_the_first(
    db: Db, address: DatabaseAddress, *, commits: bool
) -> None:
    with (
        address.open("first") as first,
        address.open("second") as second,
        ThreadPoolExecutor(1) as pool,
    ):
        with first.transaction() as transaction:
            run_id, _ = one(first)
            waiting = pool.submit(one, second)
            until(lambda: waits_for_a_lock(db, second))
            if not commits:
                raise psycopg.Rollback(transaction)
        given, made = waiting.result()

    assert made is not commits
    assert (given == run_id) is commits
    assert count(db, "byrote_runs") == count(db, "byrote_events") == 1


def test_an_enqueue_waits_for_the_end_of_a_run_that_is_being_finished(
    db: Db, address: DatabaseAddress
) -> None:
    first, _ = one(db)
    [lease] = claim(db)
    with (
        address.open("worker") as worker,
        address.open("other") as other,
        ThreadPoolExecutor(1) as pool,
    ):
        with worker.transaction():
            finish(worker, [success(lease)])
            waiting = pool.submit(one, other)
            until(lambda: waits_for_a_lock(db, other))
        given, made = waiting.result()

    assert made
    assert given != first


def test_a_holder_that_came_and_ended_unseen_leaves_the_key_to_us(
    db: Db, address: DatabaseAddress
) -> None:
    """The insert met a run that is not in its snapshot; when it was sent again, that had ended."""
    script = until_accepted(enqueue_unique([(new_id(), spec())]))
    query = next(script)
    with (
        address.open("first") as first,
        address.open("second") as second,
        ThreadPoolExecutor(1) as pool,
    ):
        with first.transaction():
            holder, _ = one(first)
            waiting = pool.submit(fetch, second, query)
            until(lambda: waits_for_a_lock(db, second))
        rows = waiting.result()
        fetch(db, queries.cancel([holder]))
        query = script.send(rows)
        with pytest.raises(StopIteration) as done:
            script.send(fetch(second, query))

    assert (rows, query.args["again"]) == ([], True)
    assert done.value.value.instead == {}
    assert count(db, "byrote_runs") == 2


def test_looking_for_a_holder_that_is_never_found_ends(db: Db) -> None:
    asked: list[object] = []

    def unlucky(query: object) -> list[EnqueuedRow]:
        asked.append(query)
        return []

    with pytest.raises(KeyContended, match="'k'"):
        run_script(until_accepted(enqueue_unique([(new_id(), spec())])), unlucky)
    assert len(asked) == TRIES_MAX + 1


def test_batches_with_the_same_keys_in_any_order_do_not_wait_in_a_circle(
    db: Db, address: DatabaseAddress
) -> None:
    keys = [f"k{n}" for n in range(50)]
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        lines = [stack.enter_context(address.open(f"p{n}")) for n in range(4)]
        orders = [keys, keys[::-1], keys[25:] + keys[:25], keys[::2] + keys[1::2]]
        for _ in range(5):
            sent = [
                pool.submit(send, line, *map(spec, order))
                for line, order in zip(lines, orders, strict=True)
            ]
            made = [given for done in sent for given, is_made in done.result() if is_made]
            assert len(made) == len(set(made)) == 50
            fetch(db, queries.cancel(made))

    assert count(db, "byrote_runs") == 250


def test_processes_that_send_the_same_keys_at_once_make_one_run_for_each(db: Db, url: str) -> None:
    command = [sys.executable, "-m", "tests.store.uniting", url, "40"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        producers = [
            stack.enter_context(subprocess.Popen(command, cwd=ROOT, **pipes)) for _ in range(2)
        ]
        assert [producer.stdout.readline() for producer in producers] == ["ready\n"] * 2
        for producer in producers:
            producer.stdin.write("go\n")
            producer.stdin.flush()
        told = [[line.split() for line in producer.stdout] for producer in producers]

    assert [len(lines) for lines in told] == [40, 40]
    for (one_id, one_said), (other_id, other_said) in zip(*told, strict=True):
        assert one_id == other_id
        assert {one_said, other_said} == {"made", "found"}
    assert count(db, "byrote_runs") == 40 + 2
    assert db.execute("select count(*) from byrote_event_log").fetchone() == (42,)


def test_a_snapshot_that_cannot_see_the_holder_has_to_start_again(
    db: Db, address: DatabaseAddress
) -> None:
    """Repeatable read: no caller may get a run that its transaction cannot see."""
    with address.open("caller") as caller, caller.transaction():
        caller.execute("set transaction isolation level repeatable read")
        assert count(caller, "byrote_runs") == 0
        one(db)
        with pytest.raises(psycopg.errors.SerializationFailure), caller.transaction():
            one(caller)


# -- By a person's hand ----------------------------------------------------------------------------


def test_a_dead_run_that_is_retried_comes_back_without_its_key(db: Db) -> None:
    first, _ = one(db)
    end(db, "F")
    second, _ = one(db)
    fetch(db, queries.retry([first]))

    assert (run_of(db, first).status, run_of(db, first).unique_key) == (Status.READY, None)
    assert one(db) == (second, False)


def test_a_waiting_run_that_is_hurried_keeps_its_key(db: Db) -> None:
    first, _ = one(db, run_after="1h")
    fetch(db, queries.retry([first]))

    assert (run_of(db, first).status, run_of(db, first).unique_key) == (Status.READY, "k")
    assert one(db) == (first, False)


def test_what_repeats_a_run_has_no_key(db: Db) -> None:
    first, _ = one(db)
    replayed, shadowed = new_id(), new_id()
    fetch(db, queries.replay(original=first, id=replayed))
    fetch(db, queries.shadow([(shadowed, first)], queue="s"))

    assert run_of(db, replayed).unique_key is run_of(db, shadowed).unique_key is None
    assert one(db) == (first, False)


def test_a_key_goes_with_its_run_to_the_archive(db: Db, clock: FakeClock) -> None:
    first, _ = one(db)
    end(db, "S")
    clock.advance(hours=2)
    fetch(db, queries.archive(after="00000000-0000-0000-0000-000000000000"))

    assert count(db, "byrote_archive") == 1
    assert run_of(db, first).unique_key == "k"


# -- Beside a memo ---------------------------------------------------------------------------------
