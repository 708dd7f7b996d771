# SPDX-License-Identifier: MIT
"""A locked row of what belongs to a run holds up that run and no other, whatever the statement.

Every statement that workers, duties and commands send for many runs is sent for two, while another
transaction has locked a row of the first in one of the tables that have rows of runs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from byrote.assembly.identity import new_id
from byrote.core.json.codec import pack
from byrote.core.outcome import Printing
from byrote.core.ports.replies import Locked
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify
from byrote.testing import FakeClock
from tests.store.replay.test_shadow import cast
from tests.store.retention.test_archive import START
from tests.store.steps.test_artifact import keep
from tests.store.steps.test_step import line, note, wait
from tests.store.test_locks import locked
from tests.support import LEASE, Db, claim, enqueue, finish, success, verdict

TABLES = (
    "byrote_steps", "byrote_signals", "byrote_once", "byrote_progress", "byrote_outputs",
    "byrote_watched", "byrote_artifacts",
)  # fmt: skip
STATE = frozenset(TABLES[:4])
"""Deleted together with its run."""
RUNS = {"byrote_task_runs", "byrote_archive", "byrote_dead", "byrote_memo"}

type Leases = list[Leased]
type Act = Callable[[Db, Leases], set[str]]


@pytest.fixture
def db(db: Db) -> Db:
    """A connection on which a statement that waits fails."""
    db.execute("set lock_timeout = '500ms'")
    return db


def begun(db: Db) -> Leases:
    """Two runs under a lease that have rows everywhere: each waits for `paid`, which has come."""
    enqueue(db, 2)
    finish(db, [verdict(lease, "L", output=OUTPUT) for lease in claim(db, 2)])
    leases = claim(db, 2)
    for number, lease in enumerate(leases):
        note(db, line(lease, 1, "a"), wait(lease, 2, "event", "paid"))
        fetch(db, queries.signal(lease.id, new_id(), "paid", pack(None)))
        fetch(db, queries.once(lease.id, "charge"))
        progress(db, [lease])
        fetch(db, queries.watch(lease.id))
        assert keep(db, lease, data=b"%d" % number) == "stored"
    return leases


OUTPUT = {"stdout": "x", "stderr": "", "stdout_dropped": 0, "stderr_dropped": 0}


def ids(rows: list[Any]) -> set[str]:
    """The runs that a statement has moved."""
    return {getattr(row, "id", row) for row in rows if not isinstance(row, Locked)}


def absent(db: Db, leases: Leases, *tables: str) -> set[str]:
    """Those of these runs that have no row in any of these tables."""
    found: set[str] = set()
    for table in tables:
        text = f"select result_id::text from {table}"  # noqa: S608 -- a name from above.
        found |= {run_id for [run_id] in db.execute(text)}  # type: ignore[call-overload]
    return {lease.id for lease in leases} - found


# -- What is sent for runs ------------------------------------------------------------------------


def renew(db: Db, leases: Leases) -> set[str]:
    return {row.id for row in fetch(db, queries.renew(leases, lease_for=LEASE))}


def succeed(db: Db, leases: Leases) -> set[str]:
    one = pack(1)
    result = [one.text, one.digest.hex(), None]
    rows = [[lease.id, lease.token, lease.attempt, *result] for lease in leases]
    return {run_id for run_id, _ in fetch(db, queries.succeed(rows, provenance=None))}


def settle(letter: str, **more: Any) -> Act:
    return lambda db, leases: set(
        finish(db, [verdict(lease, letter, output=OUTPUT, **more) for lease in leases])
    )


def write_step(db: Db, leases: Leases) -> set[str]:
    return {row.id for row in note(db, *(line(lease, 3, "b") for lease in leases))}


def end_wait(db: Db, leases: Leases) -> set[str]:
    """Reach the wait again: it takes its signal."""
    rows = note(db, *(wait(lease, 2, "event", "paid") for lease in leases))
    return {row.id for row in rows if not row.open}


def progress(db: Db, leases: Leases) -> set[str]:
    told = {"percent": 5.0, "done": None, "total": None, "message": "", "data": None}
    rows = [{"id": lease.id, "token": lease.token, **told} for lease in leases]
    return set(fetch(db, queries.progress(rows)))


def show_output(db: Db, leases: Leases) -> set[str]:
    printing = Printing(b"x", b"", 1, 0)
    return {lease.id for lease in leases if fetch(db, queries.live_output(lease, printing))}


def store_artifact(db: Db, leases: Leases) -> set[str]:
    return {lease.id for lease in leases if keep(db, lease, name="y") == "stored"}


def mark(db: Db, leases: Leases) -> set[str]:
    return {lease.id for lease in leases if fetch(db, queries.once(lease.id, "ship"))}


def signal(db: Db, leases: Leases) -> set[str]:
    sent = [queries.signal(lease.id, new_id(), "paid", pack(1)) for lease in leases]
    return {lease.id for lease, query in zip(leases, sent, strict=True) if fetch(db, query)}


def verb(command: Callable[..., Any]) -> Act:
    return lambda db, leases: ids(fetch(db, command([lease.id for lease in leases])))


def claim_both(db: Db, _leases: Leases) -> set[str]:
    return {lease.id for lease in claim(db, 2)}


def sweep(db: Db, _leases: Leases) -> set[str]:
    return {row.id for row in fetch(db, queries.sweep(limit=10))}


def promote(db: Db, leases: Leases) -> set[str]:
    fetch(db, queries.promote(limit=10))
    text = "select result_id::text from byrote_task_runs where status = 'READY'"
    return {run_id for [run_id] in db.execute(text)} & {lease.id for lease in leases}


def archive(db: Db, leases: Leases) -> set[str]:
    fetch(db, queries.archive(after=START))
    return absent(db, leases, "byrote_task_runs")


def prune(db: Db, leases: Leases) -> set[str]:
    fetch(db, queries.prune())
    return absent(db, leases, "byrote_task_runs", "byrote_dead", *STATE)


def delete_orphans(db: Db, leases: Leases) -> set[str]:
    fetch(db, queries.delete_orphans())
    return absent(db, leases, *STATE)


def prune_artifacts(db: Db, leases: Leases) -> set[str]:
    fetch(db, queries.prune_artifacts(after=START))
    return absent(db, leases, "byrote_artifacts")


def drop_watched(db: Db, leases: Leases) -> set[str]:
    fetch(db, queries.watched())
    return absent(db, leases, "byrote_watched")


# -- Where runs are -------------------------------------------------------------------------------


def running(_db: Db, _clock: FakeClock, leases: Leases) -> Leases:
    return leases


def expired(_db: Db, clock: FakeClock, leases: Leases) -> Leases:
    clock.advance(minutes=5)
    return leases


def waiting(db: Db, _clock: FakeClock, leases: Leases) -> Leases:
    more = {"delay_us": 10**9, "wait": "event", "event": "other"}
    finish(db, [verdict(lease, "Z", **more) for lease in leases])
    return leases


def due(db: Db, clock: FakeClock, leases: Leases) -> Leases:
    waiting(db, clock, leases)
    clock.advance(hours=1)
    return leases


def ready(db: Db, _clock: FakeClock, leases: Leases) -> Leases:
    finish(db, [verdict(lease, "L") for lease in leases])
    return leases


def ended(db: Db, clock: FakeClock, leases: Leases) -> Leases:
    finish(db, [success(lease) for lease in leases])
    clock.advance(hours=2)
    return leases


def archived(db: Db, clock: FakeClock, leases: Leases) -> Leases:
    archive(db, ended(db, clock, leases))
    return leases


def dead(db: Db, clock: FakeClock, leases: Leases) -> Leases:
    finish(db, [verdict(lease, "F") for lease in leases])
    clock.advance(days=100)
    return leases


def deleted(db: Db, clock: FakeClock, leases: Leases) -> Leases:
    """Dead letters that were deleted: their state is left to a duty."""
    dead(db, clock, leases)
    assert len(fetch(db, queries.delete_dead([lease.id for lease in leases]))) == len(leases)
    return leases


class Case(NamedTuple):
    place: Callable[[Db, FakeClock, Leases], Leases]
    act: Act
    touched: frozenset[str] = frozenset()
    """Tables in which it changes or deletes the rows that are there."""


DELETED = STATE | {"byrote_outputs"}
EVENT = {"delay_us": 10**9, "wait": "event", "event": "other"}
CASES = {
    "renew": Case(running, renew),
    "succeed": Case(running, succeed),
    **{f"finish {letter}": Case(running, settle(letter)) for letter in "SFCLX"},
    "finish R": Case(running, settle("R", delay_us=1)),
    "finish Z": Case(running, settle("Z", **EVENT)),
    "step": Case(running, write_step),
    "end of a wait": Case(running, end_wait, frozenset({"byrote_steps", "byrote_signals"})),
    "progress": Case(running, progress, frozenset({"byrote_progress"})),
    "live output": Case(running, show_output, frozenset({"byrote_watched"})),
    "artifact": Case(running, store_artifact),
    "once": Case(running, mark),
    "signal": Case(running, signal),
    "cancel": Case(running, verb(queries.cancel)),
    "claim": Case(ready, claim_both),
    "cancel ready": Case(ready, verb(queries.cancel)),
    "sweep": Case(expired, sweep),
    "promote": Case(due, promote),
    "retry waiting": Case(waiting, verb(queries.retry), frozenset({"byrote_steps"})),
    "retry dead": Case(dead, verb(queries.retry)),
    "delete dead": Case(dead, verb(queries.delete_dead)),
    "delete": Case(ended, verb(queries.delete_runs), DELETED),
    "delete archived": Case(archived, verb(queries.delete_runs), DELETED),
    "delete the dead": Case(dead, verb(queries.delete_runs), DELETED),
    "archive": Case(ended, archive),
    "prune": Case(dead, prune, STATE),
    "delete orphans": Case(deleted, delete_orphans, STATE),
    "prune artifacts": Case(deleted, prune_artifacts, frozenset({"byrote_artifacts"})),
    "watched": Case(expired, drop_watched, frozenset({"byrote_watched"})),
}


def test_every_table_with_rows_of_runs_is_locked_below(db: Db) -> None:
    text = "select relname from pg_class join pg_attribute on attrelid = pg_class.oid where "
    text += "attname = 'result_id' and relkind in ('r', 'p') and not relispartition"
    assert {name for [name] in db.execute(text)} - RUNS == set(TABLES)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_locked_row_of_a_run_holds_up_no_other_run(
    db: Db, address: DatabaseAddress, clock: FakeClock, *, case: Case, table: str
) -> None:
    leases = case.place(db, clock, begun(db))
    stuck, free = leases
    with locked(address, table, "result_id", stuck.id):
        done = case.act(db, leases)

    assert free.id in done
    assert (stuck.id in done) is (table not in case.touched)
    if stuck.id not in done:
        assert stuck.id in case.act(db, [stuck])
    if DELETED & case.touched == DELETED:
        assert absent(db, leases, *DELETED) == {stuck.id, free.id}
    assert verify(address).findings == []


@pytest.mark.parametrize("table", sorted(STATE))
def test_a_shadow_run_with_a_locked_row_is_pruned_later_than_the_others(
    db: Db, address: DatabaseAddress, clock: FakeClock, table: str
) -> None:
    originals = [lease.id for lease in ended(db, clock, begun(db))]
    cast(db, *originals)
    leases = claim(db, 2, queues=["shadow-1"])
    for lease in leases:
        note(db, line(lease, 1, "a"))
        fetch(db, queries.signal(lease.id, new_id(), "paid", pack(None)))
        fetch(db, queries.once(lease.id, "charge"))
        progress(db, [lease])
    clock.advance(days=2)
    stuck, free = leases
    with locked(address, table, "result_id", stuck.id):
        assert prune(db, leases) == {free.id}

    assert prune(db, leases) == {stuck.id, free.id}


def test_a_locked_content_is_pruned_later_than_the_others(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    leases = deleted(db, clock, begun(db))
    prune_artifacts(db, leases)
    [[stuck]] = db.execute("select hash::text from byrote_artifact_blobs limit 1")
    sweep_blobs = partial(fetch, db, queries.prune_blobs(after=""))
    sweep_blobs()
    clock.advance(minutes=61)
    with locked(address, "byrote_artifact_blobs", "hash", stuck):
        assert [walked.removed for walked in sweep_blobs()] == [1]

    assert [walked.removed for walked in sweep_blobs()] == [1]
