# SPDX-License-Identifier: MIT
"""Short words for what most tests do."""

import contextlib
import hashlib
import itertools
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import new_id, new_token
from byrote.core.run import Leased, Run
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.query import Query
from byrote.store.runners.sync import fetch

type Db = psycopg.Connection[Any]

LEASE = timedelta(seconds=30)

_numbers = itertools.count()
_pause = threading.Event().wait


def enqueue(
    db: psycopg.Connection[Any],
    count: int = 1,
    *,
    task: str = "t",
    version: int = 1,
    **delivery: Any,
) -> list[str]:
    """Accept `count` runs of a task and give their ids, in order."""
    how = Delivery(**delivery)
    specs = [
        (new_id(), describe(task, version, [], {"n": next(_numbers)}, delivery=how))
        for _ in range(count)
    ]
    fetch(db, queries.enqueue(specs))
    return [run_id for run_id, _ in specs]


def claim(
    db: psycopg.Connection[Any],
    limit: int = 1,
    *,
    worker: str = "w",
    queues: Sequence[str] = ("default",),
    tasks: Sequence[str] = ("t@1",),
    lease_for: timedelta = LEASE,
) -> list[Leased]:
    """Lease up to `limit` runs of each queue."""
    quotas = dict.fromkeys(queues, limit)
    query = queries.claim(
        quotas=quotas, tasks=tasks, worker=worker, token=new_token(), lease_for=lease_for
    )
    return fetch(db, query)


def success(lease: Leased, result: str = "null") -> dict[str, Any]:
    """The verdict of an attempt that returned this JSON."""
    digest = hashlib.sha256(result.encode()).hexdigest()
    return {"id": lease.id, "token": lease.token, "verdict": "S", "result": result, "hash": digest}


def verdict(lease: Leased, letter: str, **more: Any) -> dict[str, Any]:
    """A verdict by its letter; failures get an error, and what succeeds a result."""
    row = {"id": lease.id, "token": lease.token, "verdict": letter, **more}
    if letter == "S" and "result" not in row:
        row = {**success(lease), **row}
    if letter in "RFX":
        row.setdefault("error", {"kind": "raised", "type": "ValueError", "message": "no"})
    return row


def run_of(db: psycopg.Connection[Any], run_id: str) -> Run:
    """The run as the database has it."""
    [run] = fetch(db, queries.run(run_id))
    return run


def row_of(db: psycopg.Connection[Any], run_id: str) -> dict[str, Any]:
    """Every column of a run, in whichever table; exactly one row has its id."""
    cursor = db.execute("select * from byrote_runs where result_id = %s", (run_id,))
    [row] = cursor.fetchall()
    return dict(zip([column.name for column in cursor.description or ()], row, strict=True))


def count(db: psycopg.Connection[Any], table: str) -> int:
    """How many rows a table of ours has."""
    [[number]] = db.execute(f"select count(*) from {table}").fetchall()  # type: ignore[call-overload]  # noqa: S608
    return int(number)


def history(db: psycopg.Connection[Any], run_id: str) -> list[str]:
    """The kinds of a run's events, in the order of its moves."""
    text = "select kind from byrote_event_log where result_id = %s order by move"
    return [kind for (kind,) in db.execute(text, (run_id,))]


def register(db: psycopg.Connection[Any], worker: str, *queues: str) -> None:
    """Announce a worker."""
    described = {"worker": worker, "pid": 1, "hands": 1, "concurrency": 1, "host": "h"}
    more = {"version": "0", "python": "3", "queues": list(queues), "tasks": ["t@1"]}
    fetch(db, queries.register(described | more))


def finish(db: psycopg.Connection[Any], verdicts: Sequence[dict[str, Any]]) -> list[str]:
    """Send verdicts; the ids that were accepted."""
    return [run_id for run_id, _ in fetch(db, queries.finish(verdicts))]


AT_COMMIT = """
create function act_at_commit() returns trigger language plpgsql set search_path from current as $$
begin
  {act};
  return null;
end
$$;
create constraint trigger act_at_commit
  after insert or update or delete on {table}
  deferrable initially deferred
  for each row execute function act_at_commit();
"""


@contextlib.contextmanager
def at_commit(db: Db, act: str, *, table: str = "byrote_task_runs") -> Iterator[None]:
    """Have transactions that write this table do this between their last statement and commit."""
    db.execute(AT_COMMIT.format(act=act, table=table))  # type: ignore[call-overload]
    try:
        yield
    finally:
        db.execute("drop function act_at_commit cascade")


UNCOMMITTED = {
    "raise exception 'not now' using errcode = '40001'": "refused",
    "perform pg_cancel_backend(pg_backend_pid()), pg_sleep(10)": "cancelled",
    "perform pg_terminate_backend(pg_backend_pid()), pg_sleep(10)": "ended",
}
"""Ways in which a transaction fails between its rows and its end, and is to be sent again."""


@contextlib.contextmanager
def failing_once(db: Db, act: str, *, table: str = "byrote_task_runs") -> Iterator[None]:
    """Have the next transaction that writes this table fail at its commit."""
    db.execute("create sequence failures")
    try:
        with at_commit(db, f"if nextval('failures') = 1 then {act}; end if", table=table):
            yield
            assert db.execute("select last_value > 1 from failures").fetchone() == (True,)
    finally:
        db.execute("drop sequence failures")


GATE = 7
"""An advisory lock."""


@contextlib.contextmanager
def commits_held(db: Db) -> Iterator[Callable[[], None]]:
    """Keep transactions that write runs from their commit until the given function is called.

    They wait as for a slow disk: the time that a statement waits for locks does not end it.
    """
    wait = f"set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared({GATE})"
    with at_commit(db, f"perform {wait}"):
        db.execute("select pg_advisory_lock(%s)", (GATE,))
        try:
            yield lambda: db.execute("select pg_advisory_unlock(%s)", (GATE,)) and None
        finally:
            db.execute("select pg_advisory_unlock_all()")


def waiting_commits(db: Db) -> set[int]:
    """The sessions that wait for their commit there."""
    text = "select pid from pg_locks where locktype = 'advisory' and not granted"
    return {pid for [pid] in db.execute(text)}


def sessions(db: Db) -> set[int]:
    """All sessions of the server; a connection that is opened later is not among them."""
    return {pid for [pid] in db.execute("select pid from pg_stat_activity")}


def waits_for_a_copy(db: Db) -> bool:
    """Whether a statement waits for the end of another transaction."""
    text = "select exists (select 1 from pg_locks where locktype = 'transactionid' and not granted)"
    return db.execute(text).fetchone() == (True,)


def until[T](fact: Callable[[], T], within: float = 60.0, what: str = "", every: float = 0.01) -> T:
    """Look until something is true and give it; fail when that takes too long."""
    deadline = monotonic() + within
    while not (found := fact()):
        assert monotonic() < deadline, what or f"not so after {within:g} s"
        _pause(every)
    return found


def state_of(pid: int) -> str:
    """The first letter of a process's state, "Z" for a zombie; empty if it does not exist.

    By `ps`, which macOS has too: tests of the worker also run where there is no /proc.
    """
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()[:1]


def waits_for_a_lock(db: psycopg.Connection[Any], other: psycopg.Connection[Any]) -> bool:
    """Whether the other connection's statement waits for a lock."""
    text = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
    return db.execute(text, (other.info.backend_pid,)).fetchone() == (True,)


def enqueue_beside(
    db: psycopg.Connection[Any], duty: psycopg.Connection[Any], query: Query[Any]
) -> BaseException | None:
    """Enqueue while a duty cannot get its locks: the duty must give up, not hold up the queue.

    Returns the error that the duty ended with, None if it went on without those locks.
    """
    db.execute("set statement_timeout = '4s'")
    with ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(fetch, duty, query)
        until(lambda: stuck.done() or waits_for_a_lock(db, duty))
        try:
            enqueue(db)
            until(stuck.done, within=10)
        finally:
            until(lambda: stuck.done() or duty.cancel_safe())
        return stuck.exception()
