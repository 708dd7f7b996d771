# SPDX-License-Identifier: MIT
"""One run has a separate statement; it must do exactly what the one for many does."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.runners.prepared import PreparedRunner
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock

type Db = psycopg.Connection[Any]

DELIVERIES = [
    Delivery(),
    Delivery(queue="mail", priority=-7, labels={"order": "42"}, traceparent="00-ab-cd-01"),
    Delivery(run_after=timedelta(minutes=5), timeout=timedelta(seconds=3)),
    Delivery(run_after=datetime(2031, 1, 2, tzinfo=UTC), retry=Retry(attempts=4, backoff="fixed")),
    Delivery(queue="ageing", priority=100),
]


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_one_is_accepted_as_one_of_many_is(db: Db, clock: FakeClock, delivery: Delivery) -> None:
    db.execute("insert into byrote_queues (queue_name, ageing) values ('ageing', '1 minute')")
    spec = describe("t", 3, [1], {"a": -0.0}, delivery=delivery)
    fetch(db, queries.enqueue_one(new_id(), spec))
    PreparedRunner().fetch(db, queries.enqueue_one(new_id(), spec))
    fetch(db, queries.enqueue([(new_id(), spec)]))

    # A batch keeps its order by a microsecond of rank per place; nothing else may differ.
    columns = "to_jsonb(run) - 'result_id' - 'rank', rank"
    rows = db.execute(f"select {columns} from byrote_task_runs as run order by rank")  # noqa: S608
    [(one, rank), (posted, same_rank), (many, next_rank)] = rows.fetchall()

    assert one == posted == many
    assert (same_rank, next_rank) == (rank, rank + 1)


def test_a_refused_statement_raises_with_the_reason_and_leaves_the_connection_usable(
    db: Db,
) -> None:
    poster, spec = PreparedRunner(), describe("t", 1, [], {}, delivery=Delivery())
    twice = queries.enqueue_one(new_id(), spec)
    poster.fetch(db, twice)
    with pytest.raises(psycopg.errors.UniqueViolation, match="byrote_task_runs_pkey"):
        poster.fetch(db, twice)
    poster.fetch(db, queries.enqueue_one(new_id(), spec))

    assert db.execute("select count(*) from byrote_task_runs").fetchone() == (2,)


def test_what_is_larger_than_every_buffer_is_posted_whole(db: Db) -> None:
    spec = describe("t", 1, ["é" * 1_900_000], {}, delivery=Delivery())
    PreparedRunner().fetch(db, queries.enqueue_one(new_id(), spec))

    assert db.execute("select spec_json from byrote_task_runs").fetchone() == (spec.text,)


def test_posting_on_a_line_that_was_cut_raises_what_psycopg_would(url: str, db: Db) -> None:
    poster, spec = PreparedRunner(), describe("t", 1, [], {}, delivery=Delivery())
    with psycopg.connect(url, autocommit=True) as other:
        poster.fetch(other, queries.enqueue_one(new_id(), spec))
        db.execute("select pg_terminate_backend(%s)", [other.info.backend_pid])
        with pytest.raises(psycopg.OperationalError):
            poster.fetch(other, queries.enqueue_one(new_id(), spec))


def test_one_run_logs_one_event_and_wakes_an_idle_worker(db: Db) -> None:
    db.execute(
        "insert into byrote_workers (worker_id, started_at, seen_at, idle, pid, hands, concurrency,"
        " host, version, python, queues, tasks)"
        " values ('w', now(), now(), true, 1, 1, 1, 'h', '0', '3', '{default}', '{}')"
    )
    db.execute("listen byrote_ready")
    run_id = new_id()
    fetch(db, queries.enqueue_one(run_id, describe("t", 1, [], {}, delivery=Delivery())))

    [heard] = list(db.notifies(timeout=5, stop_after=1))
    [event] = db.execute("select kind, result_id::text, attempt, move from byrote_event_log")

    assert heard.payload == "default"
    assert event == ("Enqueued", run_id, 0, 1)
