# SPDX-License-Identifier: MIT
"""A locked row of the service's tables, or of an old partition, holds up nothing but itself."""

from datetime import timedelta

import pytest

from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.queues.test_depths import begin, counted, kept, recount
from tests.store.queues.test_depths import count as count_events
from tests.store.test_locks import locked
from tests.support import Db, claim, count, enqueue, register

OLD = {
    "byrote_keys": "insert into byrote_keys (holder, at, key, request_hash, reply) select "
    "gen_random_uuid(), now() - interval '9 years', n::text, '', '' from generate_series(1, 2) n",
    "byrote_stats": "insert into byrote_stats (minute, n, task_version, bucket, queue_name, "
    "task_path, measure) select now() - interval '9 years', 1, 1, n, 'q', 't', 'run' "
    "from generate_series(1, 2) n",
    "byrote_audit": "insert into byrote_audit (at, items, action, request_id) select "
    "now() - interval '9 years', 1, 'x', n::text from generate_series(1, 2) n",
}
COLUMNS = {"byrote_keys": "key", "byrote_stats": "bucket", "byrote_audit": "request_id"}


@pytest.fixture
def db(db: Db) -> Db:
    """A connection on which a statement that waits fails."""
    db.execute("set lock_timeout = '500ms'")
    return db


@pytest.mark.parametrize("table", OLD)
def test_a_locked_row_of_the_service_is_pruned_later_than_the_others(
    db: Db, address: DatabaseAddress, table: str
) -> None:
    for text in OLD.values():
        db.execute(text)  # type: ignore[call-overload]
    with locked(address, table, COLUMNS[table], "1"):
        prune(db)
        assert {name: count(db, name) for name in OLD} == {**dict.fromkeys(OLD, 0), table: 1}

    prune(db)
    assert count(db, table) == 0


def prune(db: Db) -> None:
    fetch(db, queries.prune_service())
    fetch(db, queries.prune_stats())


def test_a_locked_note_of_an_unserved_task_holds_up_no_other(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    for path in ("stuck", "free"):
        enqueue(db, task=path)
    register(db, "w", "default")
    fetch(db, queries.note_unserved())
    clock.advance(seconds=20)
    with locked(address, "byrote_unserved", "task_path", "stuck"):
        assert fetch(db, queries.note_unserved()) == []

    waited = dict(db.execute("select task_path, waited from byrote_unserved").fetchall())
    assert waited == {"stuck": timedelta(0), "free": timedelta(seconds=20)}


def test_a_locked_token_delays_the_note_of_no_other(db: Db, address: DatabaseAddress) -> None:
    db.execute(
        "insert into byrote_tokens (token_id, holder, created_at, hash, name, role, queues, tasks) "
        "select gen_random_uuid(), gen_random_uuid(), now(), sha256(n::text::bytea), n::text, "
        "'read', '{q}', '{t}' from generate_series(1, 2) as n"
    )
    ids = [str(row[0]) for row in db.execute("select token_id from byrote_tokens order by name")]
    with locked(address, "byrote_tokens", "name", "1"):
        assert fetch(db, queries.use_tokens(ids)) == ids[1:]

    assert sorted(fetch(db, queries.use_tokens(ids))) == sorted(ids)


def statistics(db: Db) -> dict[tuple[str, str], int]:
    found = fetch(db, queries.stats(window=timedelta(days=1)))
    return {(tally.task, tally.measure): tally.n for tally in found}


@pytest.mark.parametrize("task", ["stuck", "free"])
def test_a_locked_count_delays_no_counting_and_loses_nothing(
    db: Db, address: DatabaseAddress, task: str
) -> None:
    begin(db)
    recount(db)
    for _ in range(3):
        enqueue(db, 2, task="stuck")
        enqueue(db, 1, task="free")
        with (
            locked(address, "byrote_stats", "task_path", task, some=False),
            locked(address, "byrote_depths", "task_path", task, some=False),
        ):
            count_events(db)
            assert kept(db) == counted(db)

    expected = {("stuck", "Enqueued"): 6, ("free", "Enqueued"): 3}
    assert statistics(db) == expected
    claim(db, 3)
    count_events(db)
    assert kept(db) == counted(db)
    assert statistics(db) == expected


def test_depths_are_corrected_around_a_locked_row(db: Db, address: DatabaseAddress) -> None:
    enqueue(db, 5)
    begin(db)
    recount(db)
    count_events(db)
    for wrong in (9, 4):
        db.execute("update byrote_depths set live = %s where queue_name = 'default'", (wrong,))
        with locked(address, "byrote_depths", "queue_name", "default"):
            assert recount(db)
            assert kept(db) == [("default", "t", 5, 0)]
        db.execute("insert into byrote_depths values (3, 1, 1, 0, 'gone', 't')")
        with locked(address, "byrote_depths", "queue_name", "gone"):
            assert recount(db)
            assert kept(db) == [("default", "t", 5, 0)]

    assert recount(db)
    assert db.execute("select live, part from byrote_depths").fetchall() == [(5, 0)]


@pytest.mark.parametrize(
    ("parent", "later"), [("byrote_archive", 0), ("byrote_outputs", 0), ("byrote_events", 1)]
)
def test_a_partition_in_use_keeps_no_later_one_except_of_the_log(
    db: Db, address: DatabaseAddress, *, parent: str, later: int
) -> None:
    for day in ("01", "02"):
        text = f"create table {parent}_202001{day} partition of {parent} for values "
        text += f"from ('2020-01-{day} 00:00+00') to ('2020-01-{day} 23:59+00')"
        db.execute(text)  # type: ignore[call-overload]
    with address.open("somebody") as other, other.transaction():
        other.execute(f"select from {parent}_20200101")  # type: ignore[call-overload]
        fetch(db, queries.prune())
        seen = "select count(to_regclass(%s)), count(to_regclass(%s)) from (values (1)) one"
        names = (f"{parent}_20200101", f"{parent}_20200102")
        assert db.execute(seen, names).fetchone() == (1, later)

    fetch(db, queries.prune())
    assert db.execute(seen, names).fetchone() == (0, 0)
