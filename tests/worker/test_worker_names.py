# SPDX-License-Identifier: MIT
"""Two apps on one database do not execute each other's tasks, and bare names are still executed."""

from byrote.core.state import Status
from tests.support import until
from tests.tasks.names import billing, named, shop
from tests.worker.harness import (
    Database,
    StartWorker,
    await_end,
    await_status,
    send,
    send_one,
    spec,
)

SHOP, BILLING, NAMED = (f"tests.tasks.names.{name}:app" for name in ("shop", "billing", "named"))


def results(db: Database, *ids: str) -> list[str]:
    return [str(run.result) for run in await_end(db, *ids)]


def announced(db: Database) -> set[str]:
    found = db.execute("select unnest(tasks) from byrote_workers").fetchall()
    return {task for (task,) in found}


def test_two_apps_execute_only_their_own_function_of_the_same_name(
    db: Database, start_worker: StartWorker
) -> None:
    start_worker(SHOP)
    start_worker(BILLING)
    calls = [spec(app.report.name, n) for n in range(10) for app in (shop, billing)]
    ids = send(db, *calls)

    assert shop.report.name == "tests.tasks.names.shop.report"
    wanted = [f"{name} {n}" for n in range(10) for name in ("shop", "billing")]
    assert results(db, *ids) == wanted


def test_a_run_under_a_bare_name_is_still_executed(db: Database, start_worker: StartWorker) -> None:
    start_worker(SHOP)

    assert results(db, send_one(db, spec("report", 1))) == ["shop 1"]


def test_a_worker_leaves_a_bare_name_to_the_worker_that_has_a_task_of_that_name(
    db: Database, start_worker: StartWorker
) -> None:
    """Whichever of them starts first."""
    start_worker(NAMED)
    start_worker(SHOP)
    ids = send(db, *(spec("report", n) for n in range(20)))

    assert results(db, *ids) == [f"named {n}" for n in range(20)]
    assert announced(db) == {"report@1", f"{shop.report.name}@1"}


def test_a_running_worker_stops_claiming_a_bare_name_that_another_registers(
    db: Database, start_worker: StartWorker
) -> None:
    first = start_worker(SHOP)
    assert "report@1" in announced(db)
    owner = start_worker(NAMED)
    mine = "select 1 from byrote_workers where worker_id = %s and 'report@1' = any (tasks)"
    until(lambda: not db.execute(mine, (first.name,)).fetchone(), 5)
    ids = send(db, *(spec(named.monthly.name, n) for n in range(20)))
    assert results(db, *ids) == [f"named {n}" for n in range(20)]

    # Without the owner, the bare name is taken again at a heartbeat.
    assert owner.stop() == 0
    late = send_one(db, spec("report", 1))
    assert await_status(db, late, Status.SUCCESSFUL).result == "shop 1"
