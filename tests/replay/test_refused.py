# SPDX-License-Identifier: MIT
"""`byrote replay --verify` on a database that refuses or hangs: it reports that, and ends."""

import signal
import threading
from collections.abc import Iterator

import msgspec
import pytest
from psycopg.conninfo import make_conninfo

from byrote import App
from byrote.assembly.clock import monotonic
from byrote.assembly.replay import session
from tests.cli.console import Process
from tests.faults.proxy import Proxy, proxied
from tests.replay.conftest import APP, Execute
from tests.support import Db
from tests.worker.harness import ROOT

pytestmark = pytest.mark.timeout(120)
READ_ONLY = "-c default_transaction_read_only=on"


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


def gate(url: str, run_id: str) -> Process:
    words = ("replay", run_id, "--verify", "--app", APP)
    return Process(*words, url=url, folder=ROOT, PYTHONPATH=str(ROOT))


def test_a_gate_on_a_read_only_database_ends_and_reports_why(
    execute: Execute,
    proxy: Proxy,
) -> None:
    [run] = execute(("price", [99]))
    with gate(make_conninfo(proxy.url, options=READ_ONLY), run.id) as process:
        said = process.ended()

    assert said.code == 1
    assert "is read-only" in said.err
    assert proxy.accepted <= 6


@pytest.mark.parametrize(
    ("right", "table"),
    [
        ("insert", "byrote_workers"),
        ("insert", "byrote_task_runs"),
        ("update", "byrote_task_runs"),
        ("insert", "byrote_provenance"),
    ],
)
def test_a_gate_without_rights_ends_and_names_the_missing_one(
    db: Db,
    role: str,
    url: str,
    execute: Execute,
    *,
    right: str,
    table: str,
) -> None:
    [run] = execute(("price", [99]))
    db.execute("truncate byrote_provenance")
    db.execute(f"revoke {right} on {table} from {role}")
    began = monotonic()
    with gate(make_conninfo(url, user=role), run.id) as process:
        said = process.ended()

    assert said.code == 1, said.out + said.err
    assert f"permission denied for table {table}" in said.err
    assert monotonic() - began < 45


def test_a_gate_that_loses_a_right_while_it_works_ends_and_names_it(
    *, db: Db, role: str, execute: Execute, proxy: Proxy
) -> None:
    """An ordinary worker waits for the right; a gate must not hold up a deployment."""
    [run] = execute(("price", [99]))
    revoke = f"revoke update on byrote_task_runs from {role}"
    fault = proxy.plan("set idle = ", "before", act=lambda: db.execute(revoke))
    with gate(make_conninfo(proxy.url, user=role), run.id) as process:
        assert fault.happened.wait(60)
        said = process.ended(45)

    assert said.code == 1, said.out + said.err
    assert "permission denied for table byrote_task_runs" in said.err


@pytest.mark.parametrize("words", ["insert into byrote_workers", "set idle = "])
def test_a_gate_ends_when_asked_though_the_server_hangs(
    execute: Execute,
    proxy: Proxy,
    words: str,
) -> None:
    [run] = execute(("price", [99]))
    fault = proxy.plan(words, "hold")
    with gate(proxy.url, run.id) as process:
        assert fault.happened.wait(60)
        proxy.black_hole = True
        process.signal(signal.SIGTERM)
        said = process.ended(25)

    assert said.code == 143
    fault.let_go.set()


def test_a_gate_reports_a_database_that_goes_away(
    execute: Execute,
    proxy: Proxy,
) -> None:
    [run] = execute(("price", [99]))
    fault = proxy.plan("set idle = ", "before", act=proxy.sever)
    with gate(proxy.url, run.id) as process:
        assert fault.happened.wait(60)
        said = process.ended()

    assert said.code == 75
    assert "byrote: PostgreSQL at " in said.err
    assert "claim: " in said.err


def test_closing_a_session_does_not_wait_for_a_worker_that_hangs(
    here: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LEAVE_S", 0.1)
    settings = msgspec.structs.replace(here.settings, executor="inline")
    replays = session.ReplaySession(here, settings, here.store, session.ReplayOptions())
    released = threading.Event()
    monkeypatch.setattr(replays._worker, "run", released.wait)
    replays._started.set()
    replays.open()
    closing = threading.Thread(target=replays.close, daemon=True)
    closing.start()
    closing.join(20)
    left = not closing.is_alive()
    released.set()

    assert left
