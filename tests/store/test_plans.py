# SPDX-License-Identifier: MIT
"""P9: with millions of rows around it, a statement still touches only what it is about."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from byrote.assembly.identity import jitter, new_id, new_token
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.queries.enqueue import again, enqueue_unique
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.steps.test_step import line, wait
from tests.support import LEASE, Db, claim, success

# Groups of pytest-xdist 3.8 have no effect with pytest 9.2, so a file lock keeps these tests apart.
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
QUEUES = [f"q{n}" for n in range(8)]
MILLION = 1_000_000

STRIP = """
alter table byrote_task_runs set unlogged;
alter table byrote_task_runs set (fillfactor = 90, autovacuum_enabled = off);
alter table byrote_task_runs drop constraint byrote_task_runs_pkey;
drop index byrote_ready_for_claim, byrote_waiting_for_promote, byrote_leased_for_sweep;
"""
FILL = """
insert into byrote_task_runs (
  result_id, rank, run_after, enqueued_at, finished_at, task_version, max_attempts, status,
  wait_reason, queue_name, task_path, spec_hash, spec_json
)
select
  lpad(to_hex(%(first)s + n), 32, '0')::uuid, n,
  timestamptz '2026-11-15 12:00+00' + %(waits)s * n * interval '1 second', '2026-11-15 12:00+00',
  case when %(status)s = 'SUCCESSFUL' then timestamptz '2026-11-15 12:00+00' end, 1, 1, %(status)s,
  case when %(status)s = 'WAITING' then 'due' end,
  'q' || n %% 8, 't', decode(repeat('00', 32), 'hex'), '{}'
from generate_series(1, %(count)s) as n
"""
RESTORE = """
alter table byrote_task_runs add primary key (result_id);
create index byrote_ready_for_claim on byrote_task_runs (queue_name, rank) where status = 'READY';
create index byrote_waiting_for_promote on byrote_task_runs (run_after) where status = 'WAITING';
create index byrote_leased_for_sweep on byrote_task_runs (leased_until) where status = 'RUNNING';
"""


def fill(db: Db, size: int) -> None:
    """`size` ready rows, as many in the future, twice as many finished."""
    db.execute(STRIP)
    groups = [("SUCCESSFUL", 2 * size, 0), ("READY", size, 0), ("WAITING", size, 1)]
    for place, (status, count, waits) in enumerate(groups):
        args = {"first": place * 10 * MILLION, "status": status, "count": count, "waits": waits}
        db.execute(FILL, args)
    db.execute(RESTORE)


class Gate:
    """A lock between the processes of one test run, and how many of them use the crowds."""

    def __init__(self, run: str) -> None:
        self._path = Path(tempfile.gettempdir()) / f"byrote-plans-{os.getuid()}-{run}"

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def users(self, change: int) -> int:
        """Count one more or one less; returns the new count."""
        count = int(self._path.read_text() or "0") + change
        self._path.write_text(str(count))
        return count

    def forget(self) -> None:
        self._path.unlink()


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate(RUN)


def build(server_url: str, name: str, size: int) -> None:
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    address = DatabaseAddress(make_conninfo(server_url, dbname=name))
    migrate(address, jitter=jitter)
    with address.open("filler", "maintenance_work_mem=256MB") as db:
        fill(db, size)


@pytest.fixture(scope="module")
def built(server_url: str, gate: Gate) -> Iterator[dict[str, DatabaseAddress]]:
    """Databases with a thousand and with four million rows, filled once per run."""
    names = {"small": f"byrote_small_{RUN}", "big": f"byrote_big_{RUN}"}
    with gate.alone():
        if gate.users(+1) == 1:
            build(server_url, names["small"], 250)
            build(server_url, names["big"], MILLION)
    yield {
        size: DatabaseAddress(make_conninfo(server_url, dbname=name))
        for size, name in names.items()
    }
    with gate.alone():
        if gate.users(-1) == 0:
            gate.forget()
            with psycopg.connect(server_url, autocommit=True) as admin:
                for name in map(sql.Identifier, names.values()):
                    admin.execute(sql.SQL("drop database {} with (force)").format(name))


@pytest.fixture
def crowds(built: dict[str, DatabaseAddress], gate: Gate) -> Iterator[dict[str, DatabaseAddress]]:
    """The crowds for this test alone: rows another test has locked would be walked over."""
    with gate.alone():
        yield built


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


class Explained:
    """What a statement did when it was really executed."""

    def __init__(self, db: Db, query: Query[Any]) -> None:
        text = b"explain (analyze, buffers, format json) " + query.sql
        [[found]] = db.execute(text, query.args).fetchall()
        plan = found if isinstance(found, list) else json.loads(found)
        self.nodes = list(nodes(plan[0]["Plan"]))

    @property
    def touched(self) -> int:
        """Pages its largest part looked at; one looked at twice counts twice."""
        return max(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in self.nodes)

    @property
    def scans(self) -> set[str]:
        relations = ("byrote_task_runs", "run", "head", "waiting")
        return {n["Node Type"] for n in self.nodes if n.get("Relation Name") in relations}


def worker_connection(address: DatabaseAddress) -> Db:
    return address.open("worker", *PLAN_GUARDS)


def claim_query(limit: int, queues: list[str]) -> Query[Any]:
    quotas = {queue: -(-limit // len(queues)) for queue in queues}
    return queries.claim(
        quotas=quotas, tasks=["t@1"], worker="w", token=new_token(), lease_for=LEASE
    )


def explain(address: DatabaseAddress, query: Query[Any], *, analyzed: bool = False) -> Explained:
    """Execute and take back; with the statistics of an empty table, or with fresh ones."""
    with worker_connection(address) as db, db.transaction() as trial:
        clock = FakeClock(db)
        clock.advance(seconds=200)
        if analyzed:
            db.execute("analyze byrote_task_runs")
        explained = Explained(db, query)
        raise psycopg.Rollback(trial)
    return explained


@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize("queues", [["q3"], QUEUES], ids=["one queue", "eight queues"])
def test_a_claim_touches_pages_in_proportion_to_its_batch(
    crowds: dict[str, DatabaseAddress], queues: list[str], analyzed: bool
) -> None:
    few, many = (
        explain(crowds["big"], claim_query(limit, queues), analyzed=analyzed) for limit in (8, 80)
    )
    small = explain(crowds["small"], claim_query(24, queues), analyzed=analyzed)

    assert "Seq Scan" not in few.scans | many.scans
    assert "Tid Scan" in many.scans
    assert few.touched < 50 * 8 + 100
    assert many.touched < 12 * few.touched
    assert few.touched < 2 * small.touched


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_promotion_touches_pages_in_proportion_to_its_batch(
    crowds: dict[str, DatabaseAddress], analyzed: bool
) -> None:
    few, many = (
        explain(crowds["big"], queries.promote(limit=limit), analyzed=analyzed)
        for limit in (10, 100)
    )
    small = explain(crowds["small"], queries.promote(limit=10), analyzed=analyzed)

    assert "Seq Scan" not in few.scans | many.scans
    assert many.touched < 12 * few.touched
    assert few.touched < 2 * small.touched + 50


def explain_finish(address: DatabaseAddress, count: int, *, analyzed: bool) -> Explained:
    with worker_connection(address) as db, db.transaction() as trial:
        FakeClock(db)
        leases = claim(db, count, queues=["q1"])
        assert len(leases) == count
        if analyzed:
            db.execute("analyze byrote_task_runs")
        explained = Explained(db, queries.finish([success(lease, "1") for lease in leases]))
        raise psycopg.Rollback(trial)
    return explained


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_finish_touches_pages_in_proportion_to_its_batch(
    crowds: dict[str, DatabaseAddress], analyzed: bool
) -> None:
    few, many = (explain_finish(crowds["big"], n, analyzed=analyzed) for n in (10, 100))
    small = explain_finish(crowds["small"], 10, analyzed=analyzed)

    assert "Seq Scan" not in few.scans | many.scans
    assert many.touched < 14 * few.touched
    assert few.touched < 2 * small.touched + 50


def explain_steps(address: DatabaseAddress, count: int, *, analyzed: bool) -> Explained:
    with worker_connection(address) as db, db.transaction() as trial:
        FakeClock(db)
        leases = claim(db, count, queues=["q1"])
        if analyzed:
            db.execute("analyze byrote_task_runs")
        lines = [line(lease, 1, "s") for lease in leases]
        lines += [wait(lease, 2, "event", "paid") for lease in leases]
        explained = Explained(db, queries.step(lines))
        raise psycopg.Rollback(trial)
    return explained


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_step_touches_pages_in_proportion_to_its_batch(
    crowds: dict[str, DatabaseAddress], analyzed: bool
) -> None:
    few, many = (explain_steps(crowds["big"], n, analyzed=analyzed) for n in (10, 100))
    small = explain_steps(crowds["small"], 10, analyzed=analyzed)

    assert "Seq Scan" not in few.scans | many.scans
    assert many.touched < 14 * few.touched
    assert few.touched < 2 * small.touched + 50


def test_a_finish_does_not_walk_what_others_have_running(
    crowds: dict[str, DatabaseAddress],
) -> None:
    """Thousands of leases elsewhere cost this worker's finish nothing."""
    address = crowds["big"]
    alone = explain_finish(address, 10, analyzed=False)
    with worker_connection(address) as db, db.transaction() as trial:
        FakeClock(db)
        claim(db, 5_000, worker="others", queues=["q2"])
        leases = claim(db, 10, queues=["q1"])
        crowded = Explained(db, queries.finish([success(lease, "1") for lease in leases]))
        raise psycopg.Rollback(trial)

    assert crowded.touched < 2 * alone.touched


def test_a_sweep_with_nothing_to_sweep_touches_almost_nothing(
    crowds: dict[str, DatabaseAddress],
) -> None:
    explain(crowds["big"], queries.sweep())  # Clears what other tests took back from the index.
    swept = explain(crowds["big"], queries.sweep())

    assert "Seq Scan" not in swept.scans
    assert swept.touched < 20


@pytest.mark.parametrize("guards", [(), PLAN_GUARDS], ids=["a producer", "the service"])
@pytest.mark.parametrize("resent", [False, True])
def test_an_enqueue_with_unique_keys_touches_pages_in_proportion_to_its_batch(
    crowds: dict[str, DatabaseAddress], *, resent: bool, guards: tuple[str, ...]
) -> None:
    touched = []
    for size in (10, 100):
        sent = [
            (new_id(), describe("t", 1, [], {}, delivery=Delivery(unique_key=f"k{n}")))
            for n in range(size)
        ]
        with crowds["big"].open("producer", *guards) as db, db.transaction() as trial:
            fetch(db, enqueue_unique(sent[: size // 2]))
            query = enqueue_unique(sent)
            explained = Explained(db, again(query) if resent else query)
            raise psycopg.Rollback(trial)
        assert "Seq Scan" not in explained.scans
        touched.append(explained.touched)

    # Of one that is resent, most are pages of the catalog: the look into the archive is planned.
    assert touched[0] < (600 if resent else 100) * 10
    assert touched[1] < 14 * touched[0]


def test_an_archive_step_reads_one_page_of_its_walk(crowds: dict[str, DatabaseAddress]) -> None:
    start = "00000000-0000-0000-0000-000000000000"
    step = explain(crowds["big"], queries.archive(after=start, limit=100))

    assert "Seq Scan" not in step.scans
    assert step.touched < 3_000


def test_the_crowd_is_as_described(crowds: dict[str, DatabaseAddress]) -> None:
    with crowds["big"].open("test") as db:
        text = "select status, count(*) from byrote_task_runs group by status order by status"
        found = dict(db.execute(text).fetchall())
        assert fetch(db, queries.promote(limit=0))[0].promoted == 0

    assert found == {"READY": MILLION, "SUCCESSFUL": 2 * MILLION, "WAITING": MILLION}
