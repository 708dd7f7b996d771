# SPDX-License-Identifier: MIT
"""Followers of the log miss nothing when the server crashes, whatever had not reached its disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from byrote.core.log.cursor import BEGINNING
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from tests.faults.test_fault_database import OwnServer
from tests.support import Db, enqueue, run_of

pytestmark = pytest.mark.xdist_group("database faults")

RELAXED = ("synchronous_commit=off",)
"""How the line of duties is opened, and that of claims that need not be durable."""


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    """A server that flushes asynchronous commits only after ten seconds."""
    made = OwnServer()
    with made.connect() as db:
        db.execute("alter system set wal_writer_delay = '10s'")
    made.restart("fast")
    yield made
    made.close()


class Follower:
    """A follower by the statements of `GET /v1/stream` and `byrote events --follow`."""

    def __init__(self, db: Db) -> None:
        self.cursor = next(iter(fetch(db, queries.cursor(back=0))), BEGINNING)
        self.told: list[tuple[str | None, str]] = []

    def read(self, db: Db) -> None:
        for event in fetch(db, queries.log_after(self.cursor, limit=100)):
            self.cursor = event[-1].cursor.event_end
            self.told += [(entry.run, entry.kind) for entry in event]


def logged(db: Db, *ids: str) -> list[tuple[str, str]]:
    text = """select result_id::text, kind from byrote_event_log
              where result_id = any(%s::uuid[]) order by result_id, move"""
    return db.execute(text, (list(ids),)).fetchall()


@contextmanager
def reading(server: OwnServer, mode: str) -> Iterator[Db]:
    """A follower's connection; one that may only read follows as well as any."""
    with server.connect() as db:
        if mode == "read only":
            db.execute("set default_transaction_read_only = on")
        yield db


MODES = pytest.mark.parametrize("mode", ["read and write", "read only"])


@MODES
@pytest.mark.parametrize("crash", ["immediate", "killed"])
def test_a_follower_misses_nothing_that_is_logged_after_a_crash(
    server: OwnServer, crash: str, mode: str
) -> None:
    """It has gone past events of duties, which were committed without waiting for the disk."""
    with server.connect() as db, reading(server, mode) as reader:
        enqueue(db)
        follower = Follower(reader)
        early = enqueue(db, 3, run_after=timedelta(hours=1))
        follower.read(reader)
        with DatabaseAddress(server.url).open("duties", *RELAXED) as duties:
            db.execute("update byrote_task_runs set run_after = now() where status = 'WAITING'")
            for _ in range(3):
                fetch(duties, queries.promote(limit=1))
            follower.read(reader)
    server.restart(crash)
    with server.connect() as db, reading(server, mode) as reader:
        late = [enqueue(db)[0] for _ in range(8)]
        follower.read(reader)

        assert sorted(follower.told) == sorted(logged(db, *early, *late))
        assert {run_of(db, run_id).status for run_id in early} == {Status.READY}


@MODES
def test_a_follower_that_begins_where_nothing_was_written_misses_nothing(
    server: OwnServer, mode: str
) -> None:
    """Transactions that came to nothing have ids, too, and these are given away again."""
    with server.connect() as db, reading(server, mode) as reader:
        with DatabaseAddress(server.url).open("duties", *RELAXED) as relaxed:
            for _ in range(5):
                enqueue(relaxed)
        for _ in range(50):
            db.execute("begin")
            db.execute("select pg_current_xact_id()")
            db.execute("rollback")
        follower = Follower(reader)
    server.restart("killed")
    with server.connect() as db, reading(server, mode) as reader:
        late = enqueue(db)
        follower.read(reader)

        assert [told for told in follower.told if told[0] in late] == [(late[0], "Enqueued")]
