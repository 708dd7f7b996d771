# SPDX-License-Identifier: MIT
"""A user of the database whose rights a test takes away."""

import os
from collections.abc import Iterator

import pytest

from tests.worker.harness import Database

ROLE = f"byrote_refused_{os.getpid()}"
"""Roles belong to the whole server, which the processes of a session share."""


@pytest.fixture
def role(db: Database) -> Iterator[str]:
    """A user who may log in and read and write every table."""
    _drop(db)
    db.execute(f"create role {ROLE} login")
    db.execute(f"grant select, insert, update, delete on all tables in schema public to {ROLE}")
    db.execute(f"grant usage on all sequences in schema public to {ROLE}")
    yield ROLE
    _drop(db)


def _drop(db: Database) -> None:
    if db.execute("select 1 from pg_roles where rolname = %s", (ROLE,)).fetchone():
        cut(db)
        db.execute(f"drop owned by {ROLE}")
        db.execute(f"drop role {ROLE}")


def cut(db: Database) -> None:
    """Terminate every session of the role."""
    ended = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = %s"
    db.execute(ended, (ROLE,))
