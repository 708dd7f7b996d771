# SPDX-License-Identifier: MIT
"""What a task leaves in a database session is gone before the next task uses the connection."""

from typing import Any

import psycopg
import pytest
from django.db import connection

from byrote.django.app import backend_of
from byrote.django.worker.signals import TaskSignals
from byrote.executors.runtime.context import Context
from tests.django.driving import drain
from tests.django.shop import elsewhere, tasks
from tests.programs import require_package

type Shop = dict[str, str]

KEPT = {"age": {"SHOP_CONN_MAX_AGE": "600"}, "pool": {"SHOP_POOL": "yes"}}
SOILED = {
    "timeout": "set statement_timeout = '1ms'",
    "search path": "set search_path = pg_catalog",
    "own setting": "select set_config('shop.tenant', 'acme', false)",
    "role": "set role pg_read_all_data",
    "time zone": "set time zone 'Asia/Tokyo'",
    "temporary table": "create temp table scratch (n int)",
    "listen": "listen elsewhere",
    "advisory lock": "select pg_advisory_lock(42)",
    "prepared": "prepare fetch_all as select 1",
    "transaction": "begin",
    "read only": "set default_transaction_read_only = on",
}


def sessions(results: list[Any]) -> set[str]:
    for result in results:
        result.refresh()
        assert result.status == "SUCCESSFUL", result.errors
    return {repr(result.return_value[2:]) for result in results}


@pytest.mark.parametrize("kept", KEPT)
def test_a_session_begins_anew_for_the_next_task(shop: Shop, kept: str) -> None:
    """One thread, one connection: what each of them leaves would be met by the next."""
    if kept == "pool":
        require_package("psycopg_pool", "it is in the group test")
    seen = [tasks.session.enqueue()]
    for statement in SOILED.values():
        tasks.soil.enqueue(statement)
        seen += [tasks.session.enqueue(), tasks.note.enqueue("still writes")]
    tasks.soil_directly.enqueue(SOILED["own setting"])
    seen.append(tasks.session.enqueue())
    log = drain(shop, "--concurrency", "1", **KEPT[kept])

    looked = [result for result in seen if result.task.name == "session"]
    assert len(sessions(looked)) == 1
    assert {result.return_value[1] for result in looked} == {1}
    assert "waits" not in log
    for result in seen:
        result.refresh()
    assert {str(result.status) for result in seen} == {"SUCCESSFUL"}


def test_a_session_begins_anew_for_the_next_async_task(shop: Shop) -> None:
    seen = [tasks.asession.enqueue()]
    for statement in SOILED.values():
        tasks.asoil.enqueue(statement)
        seen.append(tasks.asession.enqueue())
    drain(shop, "--concurrency", "1", SHOP_CONN_MAX_AGE="600")

    assert len(sessions(seen)) == 1


def test_a_session_is_new_for_the_next_async_task_with_its_own_loop(shop: Shop) -> None:
    """Tasks that are imported when a run of theirs is met."""
    seen = [elsewhere.asession_hidden.enqueue()]
    for statement in SOILED.values():
        elsewhere.asoil_hidden.enqueue(statement)
        seen.append(elsewhere.asession_hidden.enqueue())
    drain(shop, "--concurrency", "1", SHOP_CONN_MAX_AGE="600")

    assert len(sessions(seen)) == 1


def test_a_clean_connection_is_kept(shop: Shop) -> None:
    results = [tasks.server_process.enqueue() for _ in range(5)]
    drain(shop, "--concurrency", "1", SHOP_CONN_MAX_AGE="600")
    for result in results:
        result.refresh()

    assert len({result.return_value for result in results}) == 1


def test_a_run_is_read_by_a_new_session_where_the_old_one_fails(shop: Shop) -> None:
    """Before an attempt begins: it would wait otherwise, uncharged, for as long as this goes on."""
    result = tasks.add.enqueue(1, 2)
    connection.ensure_connection()
    with psycopg.connect(shop["SHOP_DATABASE"], autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid]
        )
    ctx = Context(run_id=result.id, task="add@1", queue="default", attempt=1, labels={})

    assert TaskSignals(backend_of("default"))._read(ctx).id == result.id
