# SPDX-License-Identifier: MIT
"""Database roles with least privilege: connected as each, each may do its own and no more."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from byrote.assembly.identity import jitter, new_id
from byrote.core.ports.script import run_script
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import check
from byrote.store.queries.enqueue import again, enqueue_unique, until_accepted
from byrote.store.query import Query
from byrote.store.runners.sync import Store
from tests.cli.console import byrote
from tests.service.harness import claim_one, enqueue_one, finish_one, make_token, serving
from tests.support import Db, claim, success

type Connect = Callable[[str], Store]


@pytest.fixture
def connect(url: str, db: Db) -> Iterator[Connect]:
    """Stores of users that each have one role."""
    db.execute(byrote("roles", "--sql").out.encode())
    users, stores = [], []

    def make(role: str) -> Store:
        user = f"byrote_test_{role}"
        db.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(user)))
        create = sql.SQL("create role {} login in role {}")
        db.execute(create.format(sql.Identifier(user), sql.Identifier(f"byrote_{role}")))
        users.append(user)
        store = Store(DatabaseAddress(make_conninfo(url, user=user)), jitter=jitter)
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()
    for user in users:
        db.execute(sql.SQL("drop role {}").format(sql.Identifier(user)))


def one() -> Query[int]:
    return queries.enqueue_one(new_id(), describe("t", 1, [1], {}, delivery=Delivery()))


def many() -> Query[int]:
    spec = describe("t", 1, [1], {}, delivery=Delivery(priority=3, run_after="1h"))
    return queries.enqueue([(new_id(), spec) for _ in range(3)])


def refuses(store: Store, *statements: str) -> None:
    for statement in statements:
        with store.borrow() as line, pytest.raises(psycopg.errors.InsufficientPrivilege):
            line.execute(statement.encode())


def test_an_enqueuer_adds_runs_and_reads_none(connect: Connect, db: Db) -> None:
    store = connect("enqueue")
    store.all(one())
    store.all(many())

    assert db.execute("select count(*) from byrote_task_runs").fetchone() == (4,)
    assert store.all(queries.is_accepted(new_id())) == [False]
    refuses(
        store,
        "select spec_json from byrote_task_runs",
        "select return_json from byrote_runs",
        "select * from byrote_dead",
        "select * from byrote_events",
        "select * from byrote_tokens",
        "update byrote_task_runs set priority = 1",
        "delete from byrote_task_runs",
        "insert into byrote_dead select * from byrote_task_runs",
        "update byrote_queues set paused_at = now()",
        "select byrote_drop_partitions('byrote_events', 'at', now())",
    )


def test_an_enqueuer_finds_out_who_holds_a_unique_key(connect: Connect, db: Db) -> None:
    store = connect("enqueue")
    spec = describe("t", 1, [1], {}, delivery=Delivery(unique_key="k"))
    first, second = new_id(), new_id()
    made = run_script(until_accepted(enqueue_unique([(first, spec)])), store.all)
    found = run_script(until_accepted(again(enqueue_unique([(second, spec)]))), store.all)

    assert (made.instead, found.instead) == ({}, {second: first})
    assert db.execute("select count(*) from byrote_task_runs").fetchone() == (1,)


def test_a_worker_works_and_keeps_house(connect: Connect, db: Db) -> None:
    store = connect("worker")
    with store.borrow() as line:
        check(line)
        store.all(one())
        [run] = claim(line, tasks=["t@1"])
        assert store.all(queries.finish([success(run)]))
    store.all(queries.sweep())
    store.all(queries.promote())
    store.all(queries.partition())
    store.all(queries.prune())
    store.all(queries.archive(after="00000000-0000-0000-0000-000000000000"))
    store.all(queries.delete_orphans())
    refuses(
        store,
        "select * from byrote_tokens",
        "select * from byrote_audit",
        "select * from byrote_keys",
        "delete from byrote_events",
        "update byrote_queues set paused_at = now()",
        "select byrote_prune_audit('1 day')",
        "drop table byrote_once",
    )


def test_a_reader_sees_everything_but_values(connect: Connect) -> None:
    store = connect("read")
    with store.borrow() as line:
        line.execute("select result_id, status, queue_name, attempts from byrote_runs")
        line.execute("select kind, result_id, move from byrote_event_log")
        line.execute("select * from byrote_workers")
        line.execute("select * from byrote_stats")
    refuses(
        store,
        "select spec_json from byrote_runs",
        "select return_json from byrote_runs",
        "select errors_json from byrote_runs",
        "select * from byrote_outputs",
        "select * from byrote_tokens",
        "select * from byrote_task_runs",
        "update byrote_workers set idle = true",
        "insert into byrote_queues (queue_name) values ('x')",
    )


def test_a_service_runs_with_its_own_role_and_cannot_touch_the_audit(
    connect: Connect, store: Store, db: Db
) -> None:
    own = connect("service")
    with serving(own.address, store) as served, served.client() as client:
        run = enqueue_one(client, retry={"attempts": 2})
        finish_one(client, claim_one(client), error={"type": "Oops", "fatal": True})
        client.post("/v1/dead/requeue", json={"runs": [run]}).raise_for_status()
        client.post(f"/v1/runs/{run}/signal", json={"event": "go"}).raise_for_status()
        client.post("/v1/dead/delete", json={"runs": [run]}).raise_for_status()
        key = {"idempotency-key": "k"}
        client.post("/v1/runs", json=[{"task": "t"}] * 3, headers=key).raise_for_status()
        client.post("/v1/queues/default/pause").raise_for_status()
        for path in ("queues", "stats", "workers", "dead", "runs", f"runs/{run}/events"):
            client.get(f"/v1/{path}").raise_for_status()
    own.all(queries.prune_service())
    refuses(
        own,
        "update byrote_audit set action = 'nothing'",
        "delete from byrote_audit",
        "truncate byrote_audit",
        "select * from byrote_audit",
        "insert into byrote_tokens (token_id) values (gen_random_uuid())",
        "update byrote_tokens set role = 'admin'",
    )

    assert db.execute("select count(*) from byrote_audit").fetchone() != (0,)


def test_old_entries_of_the_audit_are_kept_for_a_month_whatever_is_asked(db: Db) -> None:
    for days in (10, 40):
        db.execute(
            "insert into byrote_audit (at, items, action, request_id)"
            " values (now() - %s * interval '1 day', 1, 'enqueue', 'r')",
            (days,),
        )

    assert db.execute("select byrote_prune_audit('1 second')").fetchone() == (1,)
    assert db.execute("select count(*) from byrote_audit").fetchone() == (1,)


def test_an_owner_may_make_tokens(connect: Connect) -> None:
    store = connect("owner")
    token_id, _ = make_token(store)

    assert store.all(queries.revoke_token(token_id)) == [token_id]
