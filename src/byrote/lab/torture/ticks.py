# SPDX-License-Identifier: MIT
"""A schedule that ticks through the torture: every tick must have its run, and only one."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from byrote.core.schedule.schedule import make_schedule, next_tick
from byrote.core.spec import Delivery, describe
from byrote.lab.torture.judgement import Violation
from byrote.store import queries
from byrote.store.runners.sync import fetch

NAME = "torture"
EVERY = timedelta(seconds=1)
_TICKS = """
select (labels ->> 'tick')::timestamptz
from byrote_runs
where task_path = 'torture.quick'
  and labels ->> 'schedule' = %s
"""


def begin(connection: psycopg.Connection[Any], history: Path) -> None:
    """Schedule a small task every second; all missed ticks are caught up."""
    call = {"folder": str(history), "n": 0}
    spec = describe("torture.quick", 1, [], call, delivery=Delivery())
    made = make_schedule(NAME, spec, every=EVERY, overlap=True, catch_up="all")
    [now] = fetch(connection, queries.now())
    fetch(connection, queries.save_schedule(made, next_at=next_tick(made, after=now)))


def end(connection: psycopg.Connection[Any]) -> None:
    """Stop the schedule."""
    fetch(connection, queries.pause_schedule(NAME))


def judge_ticks(connection: psycopg.Connection[Any]) -> tuple[int, list[Violation]]:
    """How many ticks there were, and which of them had no run, or several."""
    seen = Counter(tick for (tick,) in connection.execute(_TICKS, (NAME,)))
    return len(seen), list(_wrong(seen))


def _wrong(seen: Counter[datetime]) -> Iterator[Violation]:
    for tick, count in seen.items():
        if count > 1:
            yield Violation("tick", NAME, f"the tick of {tick.isoformat()} has {count} runs")
    for tick in sorted(seen)[:-1]:
        if tick + EVERY not in seen:
            missed = (tick + EVERY).isoformat()
            yield Violation("tick", NAME, f"the tick of {missed} has no run, a later one has")
