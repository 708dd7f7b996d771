# SPDX-License-Identifier: MIT
"""How long everything took to recover, as the database's log tells it, or whoever struck saw it."""

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
    """Whether what a fault broke works again, so that the next does not spoil how long it took."""
    if shown.get("accepts_at"):
        [[waited]] = connection.execute(_FIRST, {"at": shown["accepts_at"]}).fetchall()
        return waited is not None
    return kind != "kill_worker" or connection.execute(_LEFT_LYING, shown).fetchone() is None


class Recovery(msgspec.Struct, frozen=True):
    """How long something took to be well again, over all times it was not."""

    what: str
    times: int
    p50_s: float | None
    max_s: float | None


def recoveries(
    connection: psycopg.Connection[Any], faults: Iterable[Mapping[str, Any]]
) -> list[Recovery]:
    """Killed worker to its run claimed again, killed hand to its end told, server to a report."""
    shown = [(fault["kind"], fault["shown"]) for fault in faults if fault.get("shown")]

    def asked(text: str, args: Mapping[str, Any]) -> list[float]:
        found = connection.execute(text, args)
        return [row[0] for row in found if row[0] is not None]

    workers = [s for kind, s in shown if kind == "kill_worker" and s["runs"]]
    servers = [s for _, s in shown if s.get("accepts_at")]
    hands = [s for kind, s in shown if kind == "kill_hand"]
    return [
        _told("killed worker: its runs claimed again", workers, lambda s: asked(_AGAIN, s)),
        _told("killed hand: its end told", hands, lambda s: [s["told_s"]]),
        _told(
            "server takes connections: first report accepted",
            servers,
            lambda s: asked(_FIRST, {"at": s["accepts_at"]}),
        ),
    ]


def _told(
    what: str, shown: list[Mapping[str, Any]], times: Callable[[Mapping[str, Any]], list[float]]
) -> Recovery:
    found = [seconds for one in shown for seconds in times(one)]
    if not found:
        return Recovery(what, 0, None, None)
    return Recovery(what, len(found), round(median(found), 3), round(max(found), 3))
