# SPDX-License-Identifier: MIT
"""What a task leaves in a database session is gone before the next task uses the connection."""

from typing import Any

import pytest

from tests.django.driving import drain
from tests.django.shop import tasks

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
        pytest.importorskip("psycopg_pool")
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


def test_a_clean_connection_is_kept(shop: Shop) -> None:
    results = [tasks.server_process.enqueue() for _ in range(5)]
    drain(shop, "--concurrency", "1", SHOP_CONN_MAX_AGE="600")
    for result in results:
        result.refresh()

    assert len({result.return_value for result in results}) == 1
