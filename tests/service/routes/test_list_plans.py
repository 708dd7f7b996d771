# SPDX-License-Identifier: MIT
"""Looking on costs the same however many rows there are."""

from typing import Any

from byrote.service.service import READ_GUARDS
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.query import Query
from tests.support import Db

FILL = """
insert into byrote_task_runs (
  result_id, rank, run_after, enqueued_at, finished_at, task_version, max_attempts, status,
  wait_reason, queue_name, task_path, spec_hash, spec_json
)
select
  gen_random_uuid(), n, now() - n * interval '1 ms', now(),
  case when kind = 0 then now() end, 1, 1,
  (array['SUCCESSFUL', 'READY', 'WAITING'])[kind + 1], case when kind = 2 then 'due' end,
  'q' || n %% 4, 't', decode(repeat('00', 32), 'hex'), '{}'
from generate_series(1, %s) as n, lateral (select n %% 3 as kind) as k
"""


def pages(db: Db, query: Query[Any]) -> int:
    explain = b"explain (analyze, buffers, format json) " + query.sql
    [(plan,)] = db.execute(explain, query.args).fetchall()
    top = plan[0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


def test_a_million_runs_cost_lookers_what_some_thousand_do(url: str, db: Db) -> None:
    looks: list[tuple[tuple[str, ...], Query[Any]]] = [
        (READ_GUARDS, queries.depths(most=100)),
        (READ_GUARDS, queries.runs(limit=50)),
        (PLAN_GUARDS, queries.ready_queues(["q1", "q2", "none"])),
        (PLAN_GUARDS, queries.ended_runs(["0190b0a0-1111-7222-8333-444455556666"])),
    ]
    costs = []
    for count in (6_000, 60_000):
        db.execute(FILL, (count,))
        db.execute("analyze byrote_task_runs")
        measured = []
        for guards, query in looks:
            with DatabaseAddress(url).open("test", *guards) as line:
                pages(line, query)
                measured.append(pages(line, query))
        costs.append(measured)

    for (_, query), few, many in zip(looks, *costs, strict=True):
        # Rows of one queue are further apart in a larger table, but no more of them are read.
        assert many <= few * 2 + 20, (query.name, few, many)
