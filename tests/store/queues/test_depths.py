# SPDX-License-Identifier: MIT
"""The depths counted from the log always equal a count of the rows."""

import pytest

from byrote.core.log.cursor import BEGINNING, Cursor
from byrote.core.policy import Retry
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.replay.test_shadow import cast
from tests.store.verify.walker import Walker
from tests.support import Db, claim, enqueue, finish, until, verdict

FEW = 100_000


def begin(db: Db) -> None:
    end = next(iter(fetch(db, queries.cursor(back=0))), BEGINNING)
    fetch(db, queries.save_cursor(duty="stats", cursor=str(end)))


def cursor_now(db: Db) -> Cursor:
    [cursor] = [cursor for duty, cursor, _ in fetch(db, queries.counters()) if duty == "stats"]
    return Cursor.parse(cursor)


def count(db: Db, limit: int = 7) -> None:
    """Count all events there are, a few at a time."""

    def counted_all() -> bool:
        events = limit
        while events == limit:
            [(events, _moved)] = fetch(db, queries.count_stats(cursor_now(db), limit=limit))
        reached = cursor_now(db)
        return (reached.xid, reached.seq) >= last

    # A transaction of another database that ends just now may hold the newest events back a moment.
    last = last_of(db)
    until(counted_all)


def last_of(db: Db) -> tuple[int, int]:
    """Where the log ends."""
    text = "select xid::text, seq from byrote_events order by xid desc, seq desc limit 1"
    row = db.execute(text).fetchone()
    return (0, 0) if row is None else (int(row[0]), row[1])


def recount(db: Db, cursor: Cursor | None = None, most: int = FEW) -> bool:
    [done] = fetch(db, queries.recount(cursor or cursor_now(db), most=most))
    return done


def kept(db: Db) -> list[tuple[str, str, int, int]]:
    found = fetch(db, queries.task_depths())
    return [(depth.queue, depth.task, depth.depth, depth.running) for depth in found]


def counted(db: Db) -> list[tuple[str, str, int, int]]:
    """The same, from the rows."""
    return db.execute(
        "select queue_name, task_path, count(*) filter (where status <> 'RUNNING'),"
        " count(*) filter (where status = 'RUNNING') from byrote_task_runs"
        " where status in ('WAITING', 'READY', 'RUNNING') and shadow is not true"
        " group by 1, 2 order by 1, 2"
    ).fetchall()


@pytest.mark.parametrize("events", ["all", "few"])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_the_depths_are_those_of_the_rows(
    db: Db, clock: FakeClock, seed: int, events: str
) -> None:
    walker = Walker(db, clock, 14_000 + seed)
    db.execute("insert into byrote_queues (queue_name, events) values ('default', %s)", (events,))
    for _ in range(20):
        walker.step()
    begin(db)
    assert kept(db) == []
    assert recount(db)
    count(db)  # The beginning may be before the newest events, see `count`.
    assert kept(db) == counted(db)

    for _ in range(12):
        for _ in range(10):
            walker.step()
        count(db)
        assert kept(db) == counted(db)


def test_depths_are_by_queue_and_task_with_the_oldest_due_time(db: Db, clock: FakeClock) -> None:
    begin(db)
    recount(db)
    enqueue(db, 3, task="a", queue="one")
    enqueue(db, 2, task="b", queue="one")
    clock.advance(seconds=40)
    enqueue(db, 1, task="a", queue="two")
    claim(db, 1, queues=["one"], tasks=["a@1"])
    count(db)
    clock.advance(seconds=2)

    found = fetch(db, queries.task_depths())
    assert [(d.queue, d.task, d.depth, d.running) for d in found] == [
        ("one", "a", 2, 1), ("one", "b", 2, 0), ("two", "a", 1, 0),
    ]  # fmt: skip
    assert [round(d.oldest_ready_s or 0) for d in found] == [42, 42, 2]
    assert [d.task for d in fetch(db, queries.task_depths(queues=["one"], tasks=["b"]))] == ["b"]
    queues = {row.queue: row.depth for row in fetch(db, queries.depths())}
    assert queues == {"one": 4, "two": 1}


def test_what_is_under_way_during_the_first_count_is_counted_once(
    db: Db, address: DatabaseAddress
) -> None:
    """Events after the position may be in the rows already, or come later: neither counts twice."""
    enqueue(db, 2)
    with address.open("late") as late, late.transaction():
        enqueue(late, 3)  # Holds the position back.
        enqueue(db, 4)
        [lease] = claim(db)
        begin(db)
        assert recount(db)
        finish(db, [verdict(lease, "S", result="1", hash="00" * 32)])
    count(db)

    assert kept(db) == counted(db) == [("default", "t", 8, 0)]


def test_the_dead_come_back_into_the_depth_and_shadows_never_do(db: Db) -> None:
    begin(db)
    recount(db)
    [run_id] = enqueue(db, retry=Retry(attempts=1))
    [lease] = claim(db)
    finish(db, [verdict(lease, "F")])
    cast(db, run_id)
    fetch(db, queries.retry([run_id]))
    count(db)

    assert kept(db) == [("default", "t", 1, 0)]


@pytest.mark.parametrize("behind", [False, True])
def test_a_miscount_does_not_stay(db: Db, address: DatabaseAddress, *, behind: bool) -> None:
    """Wherever the count began: a transaction that ends just then holds the beginning back."""
    with address.open("late") as late, late.transaction():
        if behind:
            late.execute("select pg_current_xact_id()")
        enqueue(db, 5)
        begin(db)
        recount(db)
    count(db)
    db.execute("update byrote_depths set live = 9")
    db.execute("insert into byrote_depths values (3, 1, 1, 0, 'gone', 't')")
    assert not recount(db, most=11)
    assert recount(db, most=12)

    assert kept(db) == [("default", "t", 5, 0)]


def test_a_recount_from_an_old_position_writes_nothing(db: Db) -> None:
    begin(db)
    recount(db)
    before = cursor_now(db)
    enqueue(db, 5)
    count(db)

    assert not recount(db, cursor=before)
    assert kept(db) == [("default", "t", 5, 0)]


def test_before_the_first_count_no_depth_is_claimed(db: Db) -> None:
    enqueue(db)

    assert [row.depth for row in fetch(db, queries.depths())] == [None]
    assert fetch(db, queries.task_depths()) == []
