# SPDX-License-Identifier: MIT
"""The server that is measured, and for each figure a new database on it, dropped afterwards.

The statements here fill and inspect those scratch databases; nothing else ever runs them.
"""

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from byrote.assembly.identity import jitter, worker_id
from byrote.lab.bench import cpu
from byrote.lab.bench.stage import StageFailed
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.sync import unreachable

SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
"""Settings of the bench's own server; fsync and synchronous_commit stay on."""
FILL_STEP = 100_000
_REPORTED = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
)

# Ids as if made a day ago, one a millisecond: in time order, as ours are, and before all of them.
_numbers = itertools.count(1)
_FILL = """
insert into byrote_task_runs (
  result_id, rank, run_after, enqueued_at, task_version, max_attempts, priority, status, queue_name,
  task_path, spec_hash, spec_json
)
select
  (lpad(to_hex(byrote_micros(now()) / 1000 - 86400000 + n), 12, '0') || '70008000'
    || lpad(to_hex(n), 12, '0'))::uuid,
  byrote_micros(now()) + n + 100 * 10000000000000, now(), now(), 1, 1, -100, 'READY', 'default',
  'bench.noop', sha256(n::text::bytea),
  '{"task":"bench.noop","version":1,"args":[' || n || '],"kwargs":{}}'
from generate_series(%(first)s::bigint, %(last)s::bigint) as n
"""
# Claimed and finished by two updates, as in life: that decides where in the table such rows end up,
# and which space between them is left for new ones.
_CLAIM = """
update byrote_task_runs
set status = 'RUNNING', attempts = 1, moves = 2, leased_by = %(worker)s,
  lease_token = gen_random_uuid(), leased_until = now() + interval '1 hour', started_at = now(),
  last_attempted_at = now(), worker_ids = array[%(worker)s]
where status = 'READY' and queue_name = 'default'
"""
_FINISH = """
update byrote_task_runs
set status = 'SUCCESSFUL', charged = 1, moves = 3, leased_until = null, finished_at = now(),
  return_json = '12345', result_hash = sha256(result_id::text::bytea), provenance = array[1]
where status = 'RUNNING'
"""
_DRAINED = """
select count(*), extract(epoch from max(finished_at) - min(started_at))::float8
from byrote_task_runs
where priority = 0 and status = 'SUCCESSFUL' and return_json is not null and charged = 1
"""
_LEFT = """
select exists (
  select from byrote_task_runs
  where queue_name = 'default' and status = 'READY' and rank < byrote_micros(now()) + %(half)s
) or exists (select from byrote_task_runs where status = 'RUNNING' and priority = 0)
"""


class BenchServer(msgspec.Struct, frozen=True):
    """A server on which databases may be made: where it is, and its postmaster if it is here."""

    url: str
    settings: dict[str, str]
    postmaster: int | None


@contextmanager
def target(url: str | None, folder: Path) -> Iterator[BenchServer]:
    """The server at `url`, or one started in the folder for the bench alone."""
    if url is not None:
        yield _inspect(url)
        return
    # Imported here: a given URL needs no embedded server.
    from byrote.embedded.server import open_server  # noqa: PLC0415

    with open_server(folder / "pg", environ=os.environ, settings=SETTINGS) as server:
        yield _inspect(server.url)


@contextmanager
def scratch(server: BenchServer) -> Iterator[str]:
    """Create an empty database with our schema; yields its URL and drops it afterwards."""
    called = f"byrote_bench_{os.getpid()}_{next(_numbers)}"
    name = sql.Identifier(called)
    try:
        _administer(server, sql.SQL("create database {}").format(name))
    except psycopg.errors.InsufficientPrivilege as error:
        raise StageFailed(
            "Benchmarks and tortures work in a new database, and this user may not create one. "
            "Grant it with `alter role ... createdb`, or leave out --url."
        ) from error
    try:
        url = make_conninfo(server.url, dbname=called)
        migrate(DatabaseAddress(url), jitter=jitter)
        yield url
    finally:
        _administer(server, sql.SQL("drop database if exists {} with (force)").format(name))


def tidy(url: str) -> None:
    """Vacuum, analyze and, where allowed, checkpoint: the state of a settled database."""
    with DatabaseAddress(url).open("bench") as connection:
        connection.execute("vacuum analyze")
        try:
            connection.execute("checkpoint")
        except psycopg.errors.InsufficientPrivilege:
            return


def fill(url: str, *, ready: int, done: int) -> None:
    """Add rows behind the measured ones: finished ones, and READY ones with lower priority."""
    worker = {"worker": worker_id()}
    with (
        DatabaseAddress(url).open("bench", "synchronous_commit=off") as connection,
        click.progressbar(
            length=ready + done,
            label="growth: filling",
            show_pos=True,
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as bar,
    ):
        for is_done, start, end in ((True, 0, done), (False, done, done + ready)):
            for first in range(start, end, FILL_STEP):
                last = min(first + FILL_STEP, end) - 1
                connection.execute(_FILL, {"first": first, "last": last})
                if is_done:
                    connection.execute(_CLAIM, worker)
                    connection.execute(_FINISH)
                bar.update(last + 1 - first)
        # Otherwise every vacuum between the turns freezes some of them and keeps the disk busy.
        connection.execute("vacuum (freeze, analyze)")


def drained(url: str, runs: int) -> float:
    """Seconds from the first claim to the last finish; StageFailed unless all have a result."""
    with DatabaseAddress(url).open("bench") as connection:
        row = connection.execute(_DRAINED).fetchone()
    count, seconds = row or (0, 0.0)
    if count != runs:
        raise StageFailed(f"{runs:,} runs were sent and {count:,} succeeded with a result.")
    return float(seconds)


def clear(url: str) -> None:
    """Delete the measured runs, so that the next turn finds the same state."""
    with DatabaseAddress(url).open("bench") as connection:
        connection.execute("delete from byrote_task_runs where priority = 0")


def left(connection: psycopg.Connection[Any]) -> bool:
    """Whether any measured run has not finished; fillers do not count."""
    # The priorities of the measured runs and the fillers differ by a hundred steps.
    row = connection.execute(_LEFT, {"half": 50 * 10**13}).fetchone()
    return bool(row and row[0])


def _inspect(url: str) -> BenchServer:
    address = DatabaseAddress(url)
    try:
        with address.open("bench") as connection:
            found = connection.execute(
                "select name, current_setting(name) from pg_settings where name = any (%s)",
                [list(_REPORTED)],
            ).fetchall()
            return BenchServer(url, dict(found), cpu.postmaster_of(connection.info.backend_pid))
    except psycopg.OperationalError as error:
        raise unreachable(address, error) from error


def _administer(server: BenchServer, statement: sql.Composed) -> None:
    with DatabaseAddress(server.url).open("bench") as connection:
        connection.execute(statement)
