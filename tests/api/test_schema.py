# SPDX-License-Identifier: MIT
"""Byrote in a schema of its own, from `byrote migrate` to `byrote verify`, beside one in public."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byrote import App
from byrote.core.errors import SchemaMismatch
from byrote.core.text.schema_name import quoted
from byrote.sdk import Client
from tests.cli.console import Process, byrote
from tests.homes import HOSTILE, home_in
from tests.sdk.harness import ServiceProcess, new_service_token
from tests.support import Db, count, until

APP = """
import os, psycopg, byrote
from byrote import Retry

app = byrote.App({url!r}, schema={schema!r})

@app.task(name="plain")
def plain(n):
    return n

@app.task(name="stepped")
def stepped(ctx: byrote.Context, n):
    first = ctx.step("double", lambda: n * 2)
    ctx.artifact("note.txt", b"kept")
    with psycopg.connect({url!r}) as connection, ctx.once("paid", connection) as new:
        pass
    return [first, new]

@app.task(name="memoised", memo="1h")
def memoised(n):
    return n

@app.task(name="flaky", retry=Retry(attempts=2, delay_first="0s", jitter=False))
def flaky(ctx: byrote.Context):
    if ctx.attempt == 1:
        raise ValueError("once")

@app.task(name="fails")
def fails():
    raise ValueError("for good")

app.schedule("ticking", plain.spec(7), every="1s")
"""


@pytest.fixture
def db(url: str) -> Iterator[Db]:
    with home_in(url).open("test") as connection:
        yield connection


@pytest.fixture
def folder(tmp_path: Path, url: str) -> Path:
    (tmp_path / "shop_in_schema.py").write_text(APP.format(url=url, schema=HOSTILE))
    return tmp_path


def _public(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return {
            table: count(connection, f"public.{table}")
            for table in ("byrote_runs", "byrote_events", "byrote_workers", "byrote_steps")
        }


def test_a_whole_life_in_a_schema(
    url: str, db: Db, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker takes the schema from the app's code; everything else from --schema."""
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "shop_in_schema", raising=False)
    import shop_in_schema as shop  # type: ignore[import-not-found]  # noqa: PLC0415

    db.execute("insert into byrote_queues (queue_name, archive_after) values ('default', '0')")
    handles = [
        shop.stepped.enqueue(3),
        shop.memoised.enqueue(1),
        shop.flaky.enqueue(),
        shop.plain.using(unique_key="k").enqueue(1),
    ]
    held = shop.plain.using(unique_key="k").enqueue(2)
    dead = shop.fails.enqueue()
    with Process(
        "worker", "shop_in_schema:app", "--hands", "1", folder=folder, PYTHONPATH=str(folder)
    ):
        ended = [handle.result(timeout=60) for handle in handles]
        remembered = shop.memoised.enqueue(1)
        until(lambda: count(db, "byrote_dead") == 1)
        until(lambda: db.execute("select sum(runs) from byrote_periodic_tasks").fetchone() > (0,))
        db.execute("update byrote_duties set next_at = '-infinity'")
        until(lambda: count(db, "byrote_archive") > 2)
    again = remembered.result(timeout=5)
    shop.app.close()

    assert ended[0] == [6, True]
    assert again == 1
    assert (held.created, held.id) == (False, handles[3].id)
    assert _public(url) == dict.fromkeys(_public(url), 0)
    report = byrote("verify", "--json", "--schema", HOSTILE, url=url)
    assert (report.code, report.object["sound"]) == (0, True), report.out
    assert report.object["runs"] >= 6
    [letter] = byrote("dead", "list", "--json", "--schema", HOSTILE, url=url).objects
    assert letter["id"] == dead.id
    assert byrote("dead", "list", "--json", url=url).objects == []
    doctor = byrote("doctor", "--json", "--schema", HOSTILE, url=url)
    states = {check["name"]: check["state"] for check in doctor.object["checks"]}
    assert states["schema"] == states["rights"] == "ok"


def test_the_service_and_the_sdk_in_a_schema(url: str, db: Db, tmp_path: Path) -> None:
    log = tmp_path / "log"
    service = ServiceProcess(url, log, flags=("--schema", HOSTILE))
    try:
        secret = new_service_token(db)
        with Client(service.url, secret) as client:
            sent = client.enqueue("plain", 1)
            assert [run.id for run in client.runs().runs] == [sent.id]
    finally:
        service.kill()

    assert count(db, "byrote_runs") == 1
    assert _public(url) == dict.fromkeys(_public(url), 0)


def test_notifications_stay_in_their_schema(url: str, db: Db) -> None:
    """An idle worker of the one installation is not woken by runs of the other."""
    idle = """
        insert into byrote_workers (
          worker_id, started_at, seen_at, idle, pid, hands, concurrency, host, version, python,
          queues, tasks
        ) values ('w', now(), now(), true, 1, 1, 1, '', '', '', '{default}', '{}')
    """
    row = db.execute("select byrote_channel('byrote_ready')").fetchone()
    assert row is not None
    with (
        psycopg.connect(url, autocommit=True) as public,
        App(url) as plain,
        App(url, schema=HOSTILE) as own,
    ):
        for connection, channel in ((db, row[0]), (public, "byrote_ready")):
            connection.execute(idle)
            connection.execute(f"listen {channel}".encode())
        task = {"in_public": plain, "in_its_own": own}
        for name, app in task.items():
            app.task(name=name)(lambda: None).using(queue="default").enqueue()
        heard = [
            [n.channel for n in each.notifies(timeout=2, stop_after=2)] for each in (db, public)
        ]

    assert heard == [[row[0]], ["byrote_ready"]]
    assert row[0] != "byrote_ready"


def test_migrate_puts_everything_into_the_schema(url: str) -> None:
    objects = """
        select count(*) from pg_class
        where relnamespace = to_regnamespace('fresh') and relname like 'byrote%'
    """
    before = "select count(*) from pg_class where relnamespace = 'public'::regnamespace"
    with psycopg.connect(url, autocommit=True) as connection:
        others = connection.execute(before).fetchone()
        done = byrote("migrate", "--json", "--schema", "fresh", url=url)
        again = byrote("migrate", "--check", "--schema", "fresh", url=url)
        connection.execute("select fresh.byrote_make_partitions(16)")
        made = connection.execute(objects).fetchone()
        same = connection.execute(before).fetchone()
        connection.execute("drop schema fresh cascade")

    assert (done.code, again.code) == (0, 0)
    assert json.loads(done.out)["applied"]
    assert made is not None
    assert made[0] > 100
    assert same == others


def test_the_printed_sql_does_the_same_as_the_command(url: str) -> None:
    name = 'print"ed'
    script = byrote("migrate", "--sql", "--schema", name, url=url).out
    grants = byrote("roles", "--schema", name, url=url).out
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script.encode())
        connection.execute(grants.encode())
        text = "select has_table_privilege('byrote_read', %s, 'select')"
        table = f"{quoted(name)}.byrote_workers"
        granted = connection.execute(text, (table,)).fetchone()
        path = connection.execute("show search_path").fetchone()
        checked = byrote("migrate", "--check", "--schema", name, url=url)
        connection.execute(f"drop schema {quoted(name)} cascade".encode())

    assert granted == (True,)
    assert path == ('"$user", public',)
    assert checked.code == 0


def test_the_wrong_schema_is_named_with_the_right_one(url: str, db: Db) -> None:
    said = byrote("runs", "list", "--schema", "elsewhere", url=url)

    assert said.code != 0
    assert "'elsewhere'" in said.err
    assert "'public'" in said.err
    with App(url, schema="elsewhere") as app, pytest.raises(SchemaMismatch, match="'elsewhere'"):
        app.task(name="t")(lambda: None).enqueue()


@pytest.mark.parametrize("name", ["pg_own", "", "x" * 64])
def test_a_bad_schema_is_refused_everywhere(url: str, name: str) -> None:
    said: list[Any] = [byrote("runs", "list", "--schema", name, url=url)]
    if name:
        said.append(byrote("runs", "list", url=url, BYROTE_SCHEMA=name))

    assert [one.code for one in said] == [2] * len(said)
    assert all("Write a name such as 'byrote'" in one.err for one in said)
