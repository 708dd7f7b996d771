# SPDX-License-Identifier: MIT
"""A database that refuses or hangs: workers and gates report it, pause, and end when asked to."""

import signal
from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from byrote.assembly.clock import monotonic
from byrote.core.state import Status
from tests.cli.console import Process
from tests.faults.proxy import Proxy, proxied
from tests.faults.roles import cut
from tests.support import run_of, until
from tests.worker.harness import ROOT, Database, Marks, StartWorker, await_end, send_one, spec

READ_ONLY = "-c default_transaction_read_only=on"
LEAVES_S = 12.0
"""The grace of two seconds, and what a busy machine takes to end processes."""


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


def worker(url: str, *more: str) -> Process:
    words = ("worker", "tests.tasks.fates:app", "--hands", "1", "--grace", "2s", *more)
    return Process(*words, url=url, folder=ROOT, PYTHONPATH=str(ROOT))


@pytest.mark.parametrize("more", [(), ("--drain",)], ids=["stays", "drains"])
def test_a_worker_that_starts_on_a_read_only_database_ends_and_reports_why(
    proxy: Proxy, more: tuple[str, ...]
) -> None:
    with worker(make_conninfo(proxy.url, options=READ_ONLY), *more) as process:
        said = process.ended()

    assert said.code == 1
    assert "is read-only" in said.err
    assert "target_session_attrs=read-write" in said.err
    assert proxy.accepted <= 3


def test_a_worker_without_rights_ends_and_names_the_missing_one(
    db: Database, role: str, proxy: Proxy
) -> None:
    db.execute(f"revoke insert on byrote_workers from {role}")
    with worker(make_conninfo(proxy.url, user=role)) as process:
        said = process.ended()

    assert said.code == 3
    assert "permission denied for table byrote_workers" in said.err
    assert "byrote roles --sql" in said.err
    assert proxy.accepted <= 4


def test_a_role_that_may_not_even_read_the_schema_is_reported_so(
    db: Database, role: str, url: str
) -> None:
    db.execute(f"revoke all on byrote_schema from {role}")
    with worker(make_conninfo(url, user=role)) as process:
        said = process.ended()

    assert said.code == 1
    assert "permission denied for table byrote_schema" in said.err


def test_a_right_that_is_taken_away_costs_no_attempt(
    db: Database, role: str, *, url: str, start_worker: StartWorker, marks: Marks
) -> None:
    """The outcome waits in the worker until the right is granted again, under its lease."""
    busy = start_worker(url=make_conninfo(url, user=role), lease="3s")
    run_id = send_one(db, spec("mark", marks.path, "x", 0.5))
    marks.await_words(1)
    db.execute(f"revoke insert on byrote_provenance, byrote_events from {role}")
    busy.await_log("Troubled", what="finish")
    db.execute(f"grant insert on byrote_provenance, byrote_events to {role}")
    [run] = await_end(db, run_id)

    assert (run.status, run.attempts, run.losses) == (Status.SUCCESSFUL, 1, 0)
    assert "permission denied" in busy.await_log("Troubled", what="finish")["error"]
    busy.await_log("Recovered", what="finish")
    assert busy.stop() == 0


def test_a_database_that_turns_read_only_is_asked_with_pauses(
    db: Database, role: str, proxy: Proxy, start_worker: StartWorker
) -> None:
    busy = start_worker(url=make_conninfo(proxy.url, user=role), grace="2s")
    db.execute(f"alter role {role} set default_transaction_read_only = on")
    before, began = proxy.accepted, monotonic()
    cut(db)
    busy.await_log("Troubled", what="claim")
    until(lambda: monotonic() - began > 5)
    opened, took = proxy.accepted - before, monotonic() - began

    # Each of the half dozen connections backs off to a try every one and a half seconds or so.
    assert opened / took < 16
    # Once more at most, since the outcome of the first claim was answered.
    assert len(busy.logged("Troubled", what="claim")) <= 2
    asked = monotonic()
    assert busy.stop(within=LEAVES_S) == 0
    assert monotonic() - asked < LEAVES_S
    db.execute(f"alter role {role} reset default_transaction_read_only")


def test_a_worker_goes_on_when_a_read_only_database_takes_writes_again(
    db: Database, role: str, url: str, start_worker: StartWorker
) -> None:
    busy = start_worker(url=make_conninfo(url, user=role))
    db.execute(f"alter role {role} set default_transaction_read_only = on")
    cut(db)
    busy.await_log("Troubled", what="claim")
    db.execute(f"alter role {role} reset default_transaction_read_only")
    cut(db)
    [run] = await_end(db, send_one(db, spec("echo", 1)))

    assert run.status is Status.SUCCESSFUL
    assert busy.stop() == 0


@pytest.mark.parametrize("words", ["byrote_schema", "insert into byrote_workers"])
def test_a_worker_ends_when_asked_though_the_server_hangs_at_its_start(
    proxy: Proxy, words: str
) -> None:
    fault = proxy.plan(words, "hold")
    with worker(proxy.url) as process:
        assert fault.happened.wait(60)
        asked = monotonic()
        process.signal(signal.SIGTERM)
        said = process.ended(LEAVES_S)

    assert monotonic() - asked < LEAVES_S
    assert said.code in {0, 143}
    fault.let_go.set()


def test_a_worker_ends_when_asked_though_the_network_swallows_everything(
    proxy: Proxy, start_worker: StartWorker, marks: Marks, db: Database
) -> None:
    busy = start_worker(url=proxy.url, grace="2s")
    run_id = send_one(db, spec("mark", marks.path, "x", 0.2))
    marks.await_words(1)
    proxy.black_hole = True
    asked = monotonic()

    busy.stop(within=LEAVES_S)
    assert monotonic() - asked < LEAVES_S
    assert run_of(db, run_id).losses == 0
