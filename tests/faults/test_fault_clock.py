# SPDX-License-Identifier: MIT
"""Fault 32: the server's clock is set back by a minute under running workers."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from byrote.assembly.identity import jitter
from byrote.core.state import Status
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.verify import verify
from tests.store.conftest import own_database
from tests.worker.harness import Database, Marks, StartWorker, await_end, await_row, send_one, spec

MOVABLE = """
create table clock_step (by interval not null);
insert into clock_step values ('0');
create or replace function byrote_now() returns timestamptz
language sql volatile parallel safe
as $$ select clock_timestamp() + (select by from clock_step) $$;
"""


@pytest.fixture
def stepping(server_url: str) -> Iterator[DatabaseAddress]:
    """A database whose clock can be set for every session at once."""
    with own_database(server_url) as address:
        migrate(address, jitter=jitter)
        with address.open("test") as db:
            db.execute(MOVABLE)
        yield address


def set_back(db: Database) -> None:
    db.execute("update clock_step set by = by - interval '1 minute'")


def test_fault_32_workers_go_on_when_the_clock_is_set_back(
    stepping: DatabaseAddress, start_worker: StartWorker, marks: Marks
) -> None:
    """Leases are kept, nothing is executed twice, and housekeeping does not stand still."""
    url = stepping.conninfo("test")
    workers = [start_worker(url=url, lease="2s") for _ in range(2)]
    gate = Path(f"{marks.path}-gate")
    with stepping.open("test") as db:
        long = send_one(db, spec("a_hold", marks.path, str(gate)))
        marks.await_words(1)
        set_back(db)
        later = send_one(db, spec("echo", 1, run_after=timedelta(seconds=1)))
        [due] = await_end(db, later, within=20)
        [[stepped]] = db.execute("select byrote_now()").fetchall()
        renewed = """select 1 from byrote_event_log where result_id = %s and kind = 'Renewed'
                     and at > %s"""
        await_row(db, renewed, long, stepped)
        gate.touch()
        [run] = await_end(db, long)

    assert (run.status, run.attempts, run.losses) == (Status.SUCCESSFUL, 1, 0)
    assert due.status is Status.SUCCESSFUL
    assert len(marks.words) == 1
    assert not any(worker.logged("LeaseRefused") for worker in workers)
    assert verify(stepping).sound
