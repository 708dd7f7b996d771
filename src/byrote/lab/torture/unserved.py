# SPDX-License-Identifier: MIT
"""Runs of a task that no worker knows: each must end FAILED after its time, and no others."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg

from byrote.core.spec import Delivery, Spec, describe
from byrote.core.unserved import FAULT
from byrote.lab.torture.judgement import Violation
from byrote.store import queries
from byrote.store.runners.sync import fetch

TASK = "torture.unknown"
RUNS = 20
AFTER = timedelta(seconds=5)
SOMETIMES_KNOWN = "torture.newcomer"
"""Rolling deploys leave this task without a worker for a while, so its runs may end this way."""
_ENDED = """
select
  result_id::text, task_path, status, attempts, jsonb_array_length(coalesce(errors_json, '[]')),
  errors_json -> -1 ->> 'kind', extract(epoch from finished_at - enqueued_at)::float8
from byrote_runs
where task_path = %(task)s
  or (status = 'FAILED' and errors_json -> -1 ->> 'kind' = %(kind)s)
"""


def begin(connection: psycopg.Connection[Any]) -> list[Spec]:
    """Let the queue wait for a few seconds only; returns the specs to enqueue."""
    fetch(connection, queries.set_unserved("default", after=AFTER))
    return [describe(TASK, 1, [n], {}, delivery=Delivery()) for n in range(RUNS)]


def judge_unserved(connection: psycopg.Connection[Any]) -> tuple[int, list[Violation]]:
    """The number of runs that ended because no worker knew them, and any violations."""
    rows = connection.execute(_ENDED, {"task": TASK, "kind": FAULT}).fetchall()
    ended = sum(row[1] == TASK and row[2] == "FAILED" for row in rows)
    return ended, [found for row in rows for found in _wrong(*row)]


def _wrong(run: str, task: str, *row: Any) -> Iterator[Violation]:
    status, attempts, errors, kind, waited_s = row
    if task != TASK:
        if task != SOMETIMES_KNOWN:
            yield Violation("unserved", run, f"ended as {FAULT}, though every worker knows {task}")
        return
    if (status, attempts, errors, kind) != ("FAILED", 0, 1, FAULT):
        found = f"is {status} after {attempts} attempts with {errors} errors, the last {kind}"
        yield Violation("unserved", run, found)
    elif waited_s < AFTER.total_seconds():
        yield Violation("unserved", run, f"ended after {waited_s:.1f} s, before its time")
