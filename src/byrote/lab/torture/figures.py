# SPDX-License-Identifier: MIT
"""Times of recovery, from the database's event log or measured by the fault itself."""

from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

import msgspec
import psycopg

_AGAIN = """
select extract(epoch from min(log.at) - %(at)s::timestamptz)::float8
from byrote_event_log as log
where log.result_id = any (%(runs)s::uuid[])
  and log.at > %(at)s::timestamptz
  and log.at < %(at)s::timestamptz + interval '5 minutes'
  and log.kind = 'Claimed'
  and log.worker <> 'zombie'
group by log.result_id
"""
_FIRST = """
select extract(epoch from min(at) - %(at)s::timestamptz)::float8
from byrote_events
where kind in ('Succeeded', 'Retried', 'Failed')
  and worker <> 'zombie'
  and at > %(at)s::timestamptz
  and at < %(at)s::timestamptz + interval '5 minutes'
"""


_LEFT_LYING = """
select 1
from byrote_task_runs
where result_id = any (%(runs)s::uuid[])
  and (status = 'READY' or (status = 'RUNNING' and leased_by = %(worker)s))
limit 1
"""


def recovered(connection: psycopg.Connection[Any], kind: str, shown: Mapping[str, Any]) -> bool:
    """Whether the effect of a fault is over, so that the next one does not distort its time."""
    if shown.get("accepts_at"):
        [[waited]] = connection.execute(_FIRST, {"at": shown["accepts_at"]}).fetchall()
        return waited is not None
    return kind != "kill_worker" or connection.execute(_LEFT_LYING, shown).fetchone() is None


class Recovery(msgspec.Struct, frozen=True):
    """Time that one kind of recovery took, over all times it happened."""

    what: str
    times: int
    p50_s: float | None
    max_s: float | None


def recoveries(
    connection: psycopg.Connection[Any], faults: Iterable[Mapping[str, Any]]
) -> list[Recovery]:
    """Killed worker to its run claimed again, killed hand to its end logged, server to a report."""
    shown = [(fault["kind"], fault["shown"]) for fault in faults if fault.get("shown")]

    def asked(text: str, args: Mapping[str, Any]) -> list[float]:
        found = connection.execute(text, args)
        return [row[0] for row in found if row[0] is not None]

    workers = [s for kind, s in shown if kind == "kill_worker" and s["runs"]]
    servers = [s for _, s in shown if s.get("accepts_at")]
    hands = [s for kind, s in shown if kind == "kill_hand"]
    return [
        _longest("killed worker: its runs claimed again", workers, lambda s: asked(_AGAIN, s)),
        _longest("killed hand: its end reported", hands, lambda s: [s["reported_s"]]),
        _longest(
            "server takes connections: first report accepted",
            servers,
            lambda s: asked(_FIRST, {"at": s["accepts_at"]}),
        ),
    ]


def _longest(
    what: str, shown: list[Mapping[str, Any]], times: Callable[[Mapping[str, Any]], list[float]]
) -> Recovery:
    found = [seconds for one in shown for seconds in times(one)]
    if not found:
        return Recovery(what, 0, None, None)
    return Recovery(what, len(found), round(median(found), 3), round(max(found), 3))
