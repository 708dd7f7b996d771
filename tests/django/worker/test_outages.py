# SPDX-License-Identifier: MIT
"""A database that refuses sessions, or goes away under a task, costs no attempt."""

import contextlib
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, connection, connections

from byrote.assembly.clock import monotonic
from byrote.core.state import Status
from byrote.django.worker.outages import delay_of, outage_of
from tests.django.driving import manage, working
from tests.django.shop import tasks
from tests.faults.test_fault_database import OwnServer
from tests.support import enqueue, run_of, until

type Shop = dict[str, str]

ROLE = "shop_of_few_sessions"
TAKEN = "select count(*) from pg_stat_activity where usename = 'shop_of_few_sessions'"


@pytest.fixture
def limited(shop: Shop) -> Iterator[tuple[Shop, psycopg.Connection[Any]]]:
    """The shop as a user whose number of sessions can be limited, and a connection to do so."""
    with psycopg.connect(shop["SHOP_DATABASE"], autocommit=True) as db:
        db.execute(f"drop role if exists {ROLE}")  # type: ignore[call-overload]
        db.execute(f"create role {ROLE} login in role byrote")  # type: ignore[call-overload]
        url = psycopg.conninfo.make_conninfo(shop["SHOP_DATABASE"], user=ROLE)
        yield {**shop, "SHOP_DATABASE": url}, db
        db.execute(f"drop role {ROLE}")  # type: ignore[call-overload]


def limit(db: psycopg.Connection[Any], sessions: int) -> None:
    db.execute(f"alter role {ROLE} connection limit {sessions}")  # type: ignore[call-overload]


def test_a_task_waits_while_the_server_has_no_session_left(
    limited: tuple[Shop, psycopg.Connection[Any]],
) -> None:
    shop, db = limited
    first = tasks.add.enqueue(1, 2)
    with working(shop):
        until(lambda: ended(first), within=60)
        [taken] = db.execute(TAKEN).fetchone() or (0,)
        limit(db, taken)  # The worker keeps its own; the task finds none.
        second = tasks.note.enqueue("written later")
        until(lambda: begun(second), within=60)
        status = second.status
        limit(db, 100)
        until(lambda: ended(second), within=60)

    assert status == "RUNNING"
    assert (second.status, second.attempts, second.errors) == ("SUCCESSFUL", 1, [])


def begun(result: Any) -> bool:
    result.refresh()
    return bool(result.attempts)


def ended(*results: Any) -> bool:
    for result in results:
        result.refresh()
    return all(result.is_finished for result in results)


def failing(statement: str) -> BaseException:
    with pytest.raises(OperationalError) as caught, connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()
    return caught.value


def closed() -> BaseException:
    connection.ensure_connection()
    cursor = connection.cursor()
    connection.connection.close()
    with pytest.raises((InterfaceError, OperationalError)) as caught:
        cursor.execute("select 1")
    connection.close()
    return caught.value


def test_too_many_sessions_and_a_wrong_user_are_different_errors(
    limited: tuple[Shop, psycopg.Connection[Any]],
) -> None:
    shop, db = limited
    limit(db, 0)
    url = shop["SHOP_DATABASE"]
    with pytest.raises(psycopg.OperationalError) as full:
        psycopg.connect(url)
    with pytest.raises(psycopg.OperationalError) as unknown:
        psycopg.connect(url, user="nobody_at_all")
    with pytest.raises(psycopg.OperationalError) as away:
        psycopg.connect(url, host="127.0.0.1", port=1)

    outages = [outage_of(error.value, monotonic()) for error in (full, unknown, away)]
    assert outages == ["refused", None, "refused"]
    assert [delay_of(n) for n in (1, 2, 50)] == [2.0, 4.0, 60.0]


@contextlib.contextmanager
def refusing(code: str, message: str) -> Iterator[str]:
    """A server that answers each start-up packet with this fatal error; yields its address."""

    class Refusal(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4096)
            fields = f"SFATAL\0VFATAL\0C{code}\0M{message}\0\0".encode()
            self.request.sendall(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)

    with socketserver.TCPServer(("127.0.0.1", 0), Refusal) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        host, port = server.server_address[:2]
        yield f"host={host!s} port={port} user=shop dbname=shop sslmode=disable gssencmode=disable"
        server.shutdown()


@pytest.mark.parametrize(
    ("code", "message", "outage"),
    [
        ("57P01", "terminating connection due to administrator command", "refused"),
        ("57P02", "terminating connection because of crash of another server process", "refused"),
        ("57P03", "the database system is shutting down", "refused"),
        ("53300", "sorry, too many clients already", "refused"),
        ("08006", "server login has been failing, try again later", "refused"),
        ("28P01", 'password authentication failed for user "shop"', None),
        ("3D000", 'database "shop" does not exist', None),
    ],
)
def test_a_session_that_is_not_admitted_is_an_outage_unless_the_address_is_wrong(
    code: str, message: str, outage: str | None
) -> None:
    with refusing(code, message) as url, pytest.raises(psycopg.OperationalError) as refused:
        psycopg.connect(url)

    assert outage_of(refused.value, monotonic()) == outage


@pytest.mark.parametrize(
    "error",
    [
        lambda: failing("select pg_terminate_backend(pg_backend_pid())"),
        lambda: failing("set statement_timeout = '1ms'; select pg_sleep(1)"),
        closed,
        lambda: ValueError("server closed the connection unexpectedly"),
    ],
    ids=["terminated", "statement timeout", "closed by the task", "no error of a database"],
)
def test_what_a_task_did_to_its_session_is_its_failure(
    shop: Shop, error: Callable[[], BaseException]
) -> None:
    with connections["default"].cursor():
        assert outage_of(error(), monotonic()) is None


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    made = OwnServer()
    yield made
    made.close()


@pytest.mark.parametrize("how", ["fast", "killed"])
def test_a_restart_of_the_server_costs_no_attempt(
    shop: Shop, server: OwnServer, tmp_path: Path, how: str
) -> None:
    env = {**shop, "SHOP_DATABASE": server.url, "SHOP_MARKS": str(tmp_path)}
    made = manage(env, "migrate", "--run-syncdb")
    assert made.returncode == 0, made.stderr
    names = ["caught", "acaught", "caught_idle"]
    with server.connect() as db:
        ids = [enqueue(db, task=f"tests.django.shop.tasks.{name}")[0] for name in names]
    with working(env, "--threads", "3", SHOP_CONN_MAX_AGE="600"):
        until(lambda: len(list(tmp_path.glob("*.begun"))) == 3, within=60)
        server.restart(how)
        (tmp_path / "go").touch()
        with server.connect() as db:
            until(lambda: all(run_of(db, i).finished_at for i in ids), within=60)
            runs = [run_of(db, i) for i in ids]

    assert [run.status for run in runs] == [Status.SUCCESSFUL] * 3, [
        [f["message"] for f in run.faults] for run in runs
    ]
    assert {run.charged for run in runs} == {1}  # The attempt that succeeded.
    assert all(run.attempts >= 2 for run in runs)
