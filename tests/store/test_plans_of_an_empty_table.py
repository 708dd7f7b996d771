# SPDX-License-Identifier: MIT
"""A worker plans its statements when the table is empty, and keeps the plans while it fills."""

from typing import Any

import pytest

from byrote.assembly.identity import new_id, new_token
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.query import Query
from tests.core.leases import leased
from tests.store.steps.test_step import line
from tests.store.test_plans import Explained
from tests.support import LEASE, Db, success, verdict


def leases() -> list[Leased]:
    return [leased(id=new_id(), token=new_token()) for _ in range(20)]


STATEMENTS: dict[str, Query[Any]] = {
    "finish": queries.finish(
        [success(lease) for lease in leases()]
        + [verdict(lease, letter, delay_us=1) for lease in leases() for letter in "RFCZLX"]
    ),
    "succeed": queries.succeed(
        [(lease.id, lease.token, 1, "null", "00" * 32, None) for lease in leases()]
    ),
    "renew": queries.renew(leases(), lease_for=LEASE),
    "settled": queries.finished_leases(leases()),
    "held": queries.leased_runs([(lease.id, lease.token) for lease in leases()]),
    "step": queries.step([line(lease, 1, "charge") for lease in leases()]),
    "progress": queries.progress(
        [{"id": lease.id, "token": lease.token, "percent": 1.0} for lease in leases()]
    ),
    "archive": queries.archive(after=new_id()),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_is_planned_for_an_empty_table_finds_runs_by_their_ids(
    db: Db, address: DatabaseAddress, name: str
) -> None:
    with address.open("worker", *PLAN_GUARDS) as worker:
        assert db.execute("select 1 from byrote_task_runs limit 1").fetchone() is None
        nodes = Explained(worker, STATEMENTS[name]).nodes
    looks = [node for node in nodes if node.get("Relation Name") == "byrote_task_runs"]
    scans = [node for node in looks if "Scan" in node["Node Type"]]

    assert scans
    for scan in scans:
        assert "result_id" in scan.get("Index Cond", ""), scan
