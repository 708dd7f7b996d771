# SPDX-License-Identifier: MIT
"""Queries about the PostgreSQL server itself."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
import psycopg

NOTIFY_S = 2.0
"""How long a notification may take before LISTEN counts as broken."""

_HEALTH = """
select
  current_setting('server_version_num')::integer,
  current_setting('server_version'),
  pg_is_in_recovery(),
  current_setting('fsync'),
  current_setting('synchronous_commit'),
  current_setting('full_page_writes'),
  coalesce(
    (
      select extract(epoch from max(clock_timestamp() - xact_start))
      from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid()
    ),
    0
  )::float8,
  clock_timestamp()
"""


class ServerHealth(msgspec.Struct, frozen=True):
    """Version, settings and state of a server."""

    version: int
    release: str
    standby: bool
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    oldest_transaction_s: float
    now: datetime


def health(connection: psycopg.Connection[Any]) -> ServerHealth:
    """Query the state of a server."""
    row = connection.execute(_HEALTH).fetchone()
    return ServerHealth(*(row or ()))


def receives(listener: psycopg.Connection[Any], notifier: psycopg.Connection[Any]) -> bool:
    """Whether a notification sent on one connection arrives on the other."""
    listener.execute("listen byrote_doctor")
    notifier.execute("select pg_notify('byrote_doctor', '')")
    return any(True for _ in listener.notifies(timeout=NOTIFY_S, stop_after=1))


def new_queues(connection: psycopg.Connection[Any], names: Iterable[str]) -> list[str]:
    """Which of these queues are not in the database."""
    asked = list(names)
    rows = connection.execute(
        "select queue_name from byrote_queues where queue_name = any (%s)", (asked,)
    )
    known = {name for (name,) in rows}
    return [name for name in asked if name not in known]
