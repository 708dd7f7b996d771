# SPDX-License-Identifier: MIT
"""A database with roles, as an installation has it, and logins that each have one role.

Its clock is the shipped one: `byrote.now` changes nothing here.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from byrote.assembly.identity import jitter, new_token
from byrote.embedded.control import destroy
from byrote.embedded.server import open_server
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from tests.cli.console import byrote
from tests.store.conftest import own_database
from tests.support import Db

ROLES = ("enqueue", "worker", "read", "service", "owner")
SYSTEM = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
LOCK = "select pg_advisory_lock(hashtext('byrote.tests.roles'))"
"""Roles belong to the whole server, which the processes of a session share."""

EARLIER = """
grant create on schema public to public;
grant insert on byrote_task_runs, byrote_events to byrote_enqueue;
grant update, delete on byrote_chain, byrote_once, byrote_artifacts to byrote_worker;
"""
"""What PostgreSQL 14 and earlier versions of roles.sql granted: the file takes it back."""

type Logins = Callable[[str], str]
"""The URL of a login that has this role alone."""


@contextmanager
def _system_server() -> Iterator[str]:
    home = Path(tempfile.gettempdir()) / f"byrote-roles-{os.getuid()}-{new_token()[:8]}"
    environ = {**os.environ, "BYROTE_PG_BIN": str(SYSTEM[0])}
    with open_server(home, environ=environ, durable=False) as server:
        yield server.url
    destroy(home)


@pytest.fixture(scope="session", params=["suite", *(path.parent.name for path in SYSTEM)])
def roles_server(request: pytest.FixtureRequest, server_url: str) -> Iterator[str]:
    """The suite's server, and the one that the system has installed, if any."""
    if request.param == "suite":
        yield server_url
        return
    with _system_server() as url:
        yield url


@pytest.fixture(scope="module")
def installed(roles_server: str) -> Iterator[str]:
    """The owner's URL of a migrated database to which roles.sql was applied."""
    with (
        own_database(roles_server) as address,
        psycopg.connect(roles_server, autocommit=True) as admin,
    ):
        migrate(address, jitter=jitter)
        admin.execute(LOCK)
        with address.open("test") as owner:
            roles = byrote("roles", "--sql").out.encode()
            owner.execute(roles)
            owner.execute(EARLIER)
            owner.execute(roles)
        admin.execute("select pg_advisory_unlock_all()")
        yield address.conninfo("owner")


@pytest.fixture(scope="module")
def logins(installed: str, roles_server: str) -> Iterator[Logins]:
    """One login for each role, dropped with the module."""
    mark = new_token()[:8]
    names = {role: f"byrote_login_{role}_{mark}" for role in ROLES}
    with psycopg.connect(roles_server, autocommit=True) as admin:
        admin.execute(LOCK)
        for role, name in names.items():
            text = sql.SQL("create role {} login in role {}")
            admin.execute(text.format(sql.Identifier(name), sql.Identifier(f"byrote_{role}")))
        admin.execute("select pg_advisory_unlock_all()")
        yield lambda role: make_conninfo(installed, user=names[role])
        admin.execute(LOCK)
        with psycopg.connect(installed, autocommit=True) as owner:
            for name in names.values():
                owner.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
                owner.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.fixture
def owner(installed: str) -> Iterator[Db]:
    with DatabaseAddress(installed).open("test") as connection:
        yield connection


@pytest.fixture
def login(logins: Logins) -> Iterator[Callable[[str], Db]]:
    """Connections of logins, by role."""
    opened: list[Db] = []

    def connect(role: str) -> Db:
        opened.append(DatabaseAddress(logins(role)).open("test"))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
