# SPDX-License-Identifier: MIT
"""Faults of the database: stopped, killed, locked, full, failed over."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from byrote.assembly.clock import monotonic
from byrote.executors.runtime.seeding import Random
from byrote.lab.torture.cluster import Cluster
from byrote.lab.torture.faults.processes import Shown
from byrote.lab.torture.stage import LEASE_S, TortureSetup

TRIES_MAX = 30


def _own(stage: TortureSetup) -> Cluster:
    if stage.cluster is None:
        raise RuntimeError("this fault needs a server of our own")
    return stage.cluster


def _stop_and_start(stage: TortureSetup, number: signal.Signals, dice: Random) -> Shown:
    node = _own(stage).primary
    node.signal(number)
    time.sleep(dice.uniform(0.0, 1.5))
    node.start()
    return {"signal": number.name, "accepts_at": stage.database_now()}


def pg_restart(stage: TortureSetup, dice: Random) -> Shown:
    """Stop the server fast and start it again."""
    return _stop_and_start(stage, signal.SIGINT, dice)


def pg_immediate(stage: TortureSetup, dice: Random) -> Shown:
    """Stop the server without a checkpoint; it recovers from its log."""
    return _stop_and_start(stage, signal.SIGQUIT, dice)


def pg_kill(stage: TortureSetup, dice: Random) -> Shown:
    """Kill the postmaster."""
    return _stop_and_start(stage, signal.SIGKILL, dice)


def kill_backend(stage: TortureSetup, dice: Random) -> Shown:
    """Kill one backend: the server restarts itself and all clients are disconnected."""
    with stage.connect() as connection:
        text = (
            "select pid from pg_stat_activity where application_name like '%torture-%' order by 1"
        )
        pids = [row[0] for row in connection.execute(text)]
    if not pids:
        return None
    victim = dice.choice(pids)
    os.kill(victim, signal.SIGKILL)
    time.sleep(0.3)
    return {"pid": victim, "accepts_at": stage.database_now()}


def terminate_backends(stage: TortureSetup, dice: Random) -> Shown:
    """End every connection but ours, several times."""
    ended = 0
    with stage.connect() as connection:
        for _ in range(dice.randint(3, 8)):
            text = """select count(pg_terminate_backend(pid)) from pg_stat_activity
                      where backend_type = 'client backend' and pid <> pg_backend_pid()
                      and datname = current_database()"""
            row = connection.execute(text).fetchone()
            ended += row[0] if row else 0
            time.sleep(dice.uniform(0.1, 0.5))
    return {"ended": ended} if ended else None


def read_only(stage: TortureSetup, dice: Random) -> Shown:
    """Refuse every write for a while."""
    node = _own(stage).primary
    setting = "alter system set default_transaction_read_only = on"
    node.execute(setting, "select pg_reload_conf()")
    time.sleep(dice.uniform(1.0, 4.0))
    refused = False
    try:
        with psycopg.connect(node.url, autocommit=True) as connection:
            connection.execute("create table torture_refused ()")
    except psycopg.errors.ReadOnlySqlTransaction:
        refused = True
    with psycopg.connect(node.url, autocommit=True) as connection:
        connection.execute("set default_transaction_read_only = off")
        connection.execute("alter system reset default_transaction_read_only")
        connection.execute("select pg_reload_conf()")
    return {"refused": True} if refused else None


def connections(stage: TortureSetup, dice: Random) -> Shown:
    """Take every connection there is."""
    taken = []
    with contextlib.ExitStack() as held:
        for _ in range(300):
            try:
                taken.append(held.enter_context(psycopg.connect(stage.url)))
            except psycopg.OperationalError:
                break
        # Those that were open stay; now they are broken too, and cannot come back.
        stage.proxies[dice.randrange(3)].cut()
        time.sleep(dice.uniform(1.0, 3.0))
    return {"taken": len(taken)} if len(taken) < 300 else None


def table_lock(stage: TortureSetup, dice: Random) -> Shown:
    """Lock the runs against all clients for longer than a lease."""
    with stage.connect() as connection, connection.transaction():
        connection.execute("set local lock_timeout = '5s'")
        connection.execute("lock table byrote_task_runs in access exclusive mode")
        time.sleep(LEASE_S * dice.uniform(1.0, 1.8))
    return {"locked": True}


def row_locks(stage: TortureSetup, dice: Random) -> Shown:
    """Lock rows under way, so that the workers that finish them have to wait."""
    with stage.connect() as connection, connection.transaction():
        text = """select result_id from byrote_task_runs where finished_at is null
                  limit 20 for update skip locked"""
        rows = connection.execute(text).fetchall()
        time.sleep(dice.uniform(0.3, LEASE_S))
    return {"rows": len(rows)} if rows else None


def held_snapshot(stage: TortureSetup, dice: Random) -> Shown:
    """Hold a snapshot open during the faults that follow."""
    seconds = dice.uniform(8.0, 20.0)
    began = threading.Event()

    def hold() -> None:
        # A restart of the server ends it early, which is harmless.
        with contextlib.suppress(psycopg.Error), stage.connect() as connection:
            connection.execute("begin isolation level repeatable read")
            connection.execute("select count(*) from byrote_task_runs")
            began.set()
            time.sleep(seconds)

    threading.Thread(target=hold, daemon=True).start()
    return {"seconds": round(seconds, 1)} if began.wait(10.0) else None


_CALM = """
create or replace function torture_at_commit() returns trigger language plpgsql as $$
begin
  return null;
end
$$
"""
_REFUSING = """
create or replace function torture_at_commit() returns trigger language plpgsql as $$
begin
  if random() < 0.4 then
    raise exception 'no commit now' using errcode = '40001';
  elsif random() < 0.2 then
    perform pg_terminate_backend(pg_backend_pid()), pg_sleep(1);
  end if;
  return null;
end
$$
"""
_TRIGGER = """
create constraint trigger torture_at_commit
  after insert or update or delete on byrote_task_runs
  deferrable initially deferred
  for each row execute function torture_at_commit()
"""


def failed_commits(stage: TortureSetup, dice: Random) -> Shown:
    """Let commits fail for a while, after their statements have sent their rows."""
    failed = "select xact_rollback from pg_stat_database where datname = current_database()"
    with stage.connect() as connection:
        connection.execute("set lock_timeout = '5s'")
        before = connection.execute(failed).fetchone()
        there = "select 1 from pg_trigger where tgname = 'torture_at_commit'"
        if connection.execute(there).fetchone() is None:
            connection.execute(_CALM)
            connection.execute(_TRIGGER)
        connection.execute(_REFUSING)
    try:
        time.sleep(dice.uniform(2.0, 4.0))
    finally:
        with stage.connect() as connection:
            # The trigger stays, and does nothing: dropping it would need a lock.
            connection.execute(_CALM)
            connection.execute("select pg_stat_force_next_flush()")
            after = connection.execute(failed).fetchone()
    count = after[0] - before[0] if after and before else 0
    return {"failed": count} if count else None


@contextlib.contextmanager
def _small_disk(folder: Path, *, size: str) -> Iterator[bool]:
    """Mount a very small file system, which needs root; yields whether it is mounted."""
    folder.mkdir(exist_ok=True)
    mount = subprocess.run(  # noqa: S603 -- our own words.
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],  # noqa: S607
        capture_output=True,
        check=False,
    )
    try:
        yield mount.returncode == 0
    finally:
        if mount.returncode == 0:
            words = ["umount", "--lazy", str(folder)]
            subprocess.run(words, capture_output=True, check=False)  # noqa: S603 -- the same.


def disk_full(stage: TortureSetup, dice: Random) -> Shown:
    """Put today's outputs on a full disk: finishes that bring output wait until there is room."""
    node = _own(stage).primary
    folder = stage.folder / f"small-{dice.randrange(10**6)}"
    with _small_disk(folder, size="8m") as there:
        if not there:
            return None
        owner = node.runner.account
        if owner is not None:
            os.chown(folder, owner.uid, owner.gid)
        with psycopg.connect(node.url, autocommit=True) as connection:
            return _fill(connection, folder, seconds=dice.uniform(2.0, 4.0))


def _fill(connection: psycopg.Connection[Any], folder: Path, *, seconds: float) -> Shown:
    today = connection.execute(
        "select 'byrote_outputs_' || to_char(clock_timestamp() at time zone 'UTC', 'YYYYMMDD')"
    ).fetchone()
    name = sql.Identifier(str(today[0] if today else ""))
    move = sql.SQL("alter table {} set tablespace {}")
    make = sql.SQL("create tablespace torture location {}").format(sql.Literal(str(folder)))
    empty = sql.SQL("truncate {}").format(name)
    away = move.format(name, sql.Identifier("torture"))
    connection.execute("set lock_timeout = '10s'")
    connection.execute(make)
    try:
        connection.execute(empty)
        connection.execute(away)
        full = _fill_up(connection)
        time.sleep(seconds)
        return {"full": True} if full else None
    finally:
        connection.execute("drop table if exists torture_filler")
        _insist(connection, move.format(name, sql.Identifier("pg_default")))
        # Only a checkpoint removes the last files in it.
        connection.execute("checkpoint")
        connection.execute("drop tablespace torture")


def _fill_up(connection: psycopg.Connection[Any]) -> bool:
    connection.execute("create table torture_filler (x text storage plain) tablespace torture")
    try:
        for _ in range(10_000):
            connection.execute("insert into torture_filler values (repeat('x', 7000))")
    except psycopg.errors.DiskFull:
        return True
    return False


def _insist(connection: psycopg.Connection[Any], statement: sql.Composed) -> None:
    """Repeat until it succeeds: the small disk is about to be removed with all its data."""
    for left in reversed(range(TRIES_MAX)):
        try:
            connection.execute(statement)
        except psycopg.errors.LockNotAvailable:
            if not left:
                raise
        else:
            return


def _fail_over(stage: TortureSetup, *, synchronous: bool) -> Shown:
    cluster = _own(stage)
    replica = cluster.replica()
    if synchronous:
        names = "alter system set synchronous_standby_names = '*'"
        cluster.primary.execute(names, "select pg_reload_conf()")
        cluster.await_streaming("sync", "quorum")
        time.sleep(2.0)
    before = monotonic()
    cluster.primary.signal(signal.SIGKILL)
    replica.promote()
    cluster.replace(replica)
    if synchronous:
        # The old node's setting for a replica was copied with its settings file.
        with psycopg.connect(replica.url, autocommit=True) as connection:
            connection.execute("set synchronous_commit = local")
            connection.execute("alter system reset synchronous_standby_names")
            connection.execute("select pg_reload_conf()")
    took = monotonic() - before
    return {"accepts_at": stage.database_now(), "t": before, "took_s": round(took, 2)}


def failover_sync(stage: TortureSetup, dice: Random) -> Shown:
    """Kill the primary and promote its synchronous replica: nothing acknowledged may be lost."""
    del dice
    return _fail_over(stage, synchronous=True)


def failover_async(stage: TortureSetup, dice: Random) -> Shown:
    """Kill the primary and promote its asynchronous replica: the last moments may be lost."""
    del dice
    return _fail_over(stage, synchronous=False)
