# SPDX-License-Identifier: MIT
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from byrote.assembly.identity import jitter, new_token
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from tests.support import Db


@contextmanager
def own_database(server_url: str) -> Iterator[DatabaseAddress]:
    """A new database without our schema, dropped afterwards."""
    name = sql.Identifier(f"byrote_bare_{new_token()[:8]}")
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(name))
        yield DatabaseAddress(make_conninfo(server_url, dbname=name._obj[0]))
        admin.execute(sql.SQL("drop database {} with (force)").format(name))


@pytest.fixture
def bare(server_url: str) -> Iterator[DatabaseAddress]:
    """A database of the test's own without our schema."""
    with own_database(server_url) as address:
        yield address


@pytest.fixture
def own(bare: DatabaseAddress) -> Iterator[Db]:
    """A migrated database of the test's own, for tests that change more than rows."""
    migrate(bare, jitter=jitter)
    with bare.open("test") as connection:
        yield connection
