# SPDX-License-Identifier: MIT
"""Filters are served by indexes, and all batches of a command together read a table once."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from byrote.service.service import READ_GUARDS
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.queries.matching import (
    FIRST,
    PURGED,
    RunFilter,
    cancel_filter,
    retry_filter,
)
from byrote.store.query import Query
from tests.store.test_plans import Explained
from tests.support import Db

ROWS = 100_000
LAST = "ffffffff-ffff-ffff-ffff-ffffffffffff"
FILL = """
insert into {table} (
  result_id, rank, run_after, enqueued_at, finished_at, task_version, max_attempts, status,
  wait_reason, queue_name, task_path, spec_hash, spec_json
)
select
  lpad(to_hex(%(first)s + n), 32, '0')::uuid, n, now(), now() - n * interval '1 s',
  case when status in ('SUCCESSFUL', 'FAILED') then now() - n * interval '1 s' end, 1, 1, status,
  case when status = 'WAITING' then 'due' end, 'q' || n / 4 %% 50, 't' || n / 4 %% 7,
  sha256(n::text::bytea), '{{}}'
from
  generate_series(1, %(rows)s) as n,
  lateral (select (%(statuses)s::text[])[1 + n %% cardinality(%(statuses)s::text[])] as status) as s
"""
RUNS = ["SUCCESSFUL", "SUCCESSFUL", "READY", "WAITING"]

FILTERS = {
    "cancel by queue": cancel_filter(queue="q3"),
    "cancel by task": cancel_filter(task="t1"),
    "cancel by hash": cancel_filter(spec_hash="00" * 32),
    "cancel since": cancel_filter(since="1m"),
    "purge": RunFilter(PURGED, queue="q3"),
    "retry by queue": retry_filter(queue="q3"),
    "retry by task": retry_filter(task="t1"),
    "retry by hash": retry_filter(spec_hash="00" * 32),
    "retry since": retry_filter(since="10m"),
    "retry of an unknown queue": retry_filter(queue="nope"),
}


@pytest.fixture
def crowd(url: str, db: Db) -> DatabaseAddress:
    """A hundred thousand dead letters, and as many other runs, half of them finished."""
    tables: Sequence[tuple[str, list[str]]] = (
        ("byrote_task_runs", RUNS),
        ("byrote_dead", ["FAILED"]),
    )
    for place, (table, statuses) in enumerate(tables):
        args = {"first": place * 10 * ROWS, "rows": ROWS, "statuses": statuses}
        db.execute(FILL.format(table=table), args)  # type: ignore[call-overload]
        db.execute(f"analyze {table}")  # type: ignore[call-overload]
    return DatabaseAddress(url)


def batch(chosen: RunFilter, after: str = FIRST, limit: int = 1_000) -> Query[Any]:
    return queries.matching(chosen, after=after, newest=LAST, limit=limit)


def scans(explained: Explained) -> set[tuple[str, str]]:
    """How each table was read, if it was."""
    return {
        (node["Relation Name"], node["Node Type"])
        for node in explained.nodes
        if "Relation Name" in node and node["Actual Loops"]
    }


def test_filters_are_served_by_indexes(crowd: DatabaseAddress) -> None:
    for guards in (READ_GUARDS, PLAN_GUARDS):
        with crowd.open("test", *guards) as db:
            for name, chosen in FILTERS.items():
                for query in (queries.count_matching(chosen), batch(chosen)):
                    read = scans(Explained(db, query))
                    assert "Seq Scan" not in {scan for _, scan in read}, (name, query.name)


def test_a_retry_reads_dead_letters_only_and_few_of_them(crowd: DatabaseAddress) -> None:
    limits = {"by queue": 2_500, "by hash": 20, "of an unknown queue": 20}
    with crowd.open("test") as db:
        for name, limit in limits.items():
            chosen = FILTERS[f"retry {name}"]
            for query in (queries.count_matching(chosen), batch(chosen)):
                explained = Explained(db, query)
                assert {table for table, _ in scans(explained)} == {"byrote_dead"}, name
                assert explained.touched < limit, (name, query.name)
        recent = Explained(db, queries.count_matching(FILTERS["retry since"]))

    assert recent.touched < 100


def test_all_batches_together_read_a_table_about_once(crowd: DatabaseAddress) -> None:
    chosen = FILTERS["cancel by task"]
    with crowd.open("test", *READ_GUARDS) as db:
        whole = Explained(db, batch(chosen, limit=ROWS)).touched
        touched, after, found = 0, FIRST, 0
        while ids := _ids(db, batch(chosen, after)):
            touched += Explained(db, batch(chosen, after)).touched
            after, found = ids[-1], found + len(ids)

    assert found == pytest.approx(ROWS / 2 / 7, abs=10)
    assert touched < 1.5 * whole


def _ids(db: psycopg.Connection[Any], query: Query[Any]) -> list[str]:
    return [str(row[0]) for row in db.execute(query.sql, query.args)]
