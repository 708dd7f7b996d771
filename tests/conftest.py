# SPDX-License-Identifier: MIT
"""One PostgreSQL for the whole session, started by the suite; one clean database per test."""

import contextlib
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from byrote import App
from byrote.assembly.identity import jitter
from byrote.embedded.control import destroy
from byrote.embedded.errors import NoServer, ServerInUse
from byrote.embedded.server import open_server
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.sync import Store
from byrote.testing import FakeClock
from byrote.testing.clock import settable
from tests.programs import forbid_skip, require

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell; the processes of the tests must not inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is not a finding: these tests do not measure how fast values are made.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs are missing."""
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            require(program)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a skipped test as failed if CI=true."""
    report = yield
    forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Report a skipped module as failed if CI=true."""
    report = yield
    forbid_skip(report)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: at the end one process would do them while the others stand idle."""
    items.sort(key=lambda item: "torture/test_torture.py" not in item.nodeid)


# Only what holds something: truncating every table and partition takes longer than most tests.
EMPTY = """
do $$
declare
  full_ones text;
begin
  select string_agg(oid::regclass::text, ', ') into full_ones
  from pg_class
  where relkind = 'r'
    and relname like 'byrote%'
    and relname not in (
      'byrote_schema', 'byrote_duties', 'byrote_artifact_home', 'byrote_retention'
    )
    and pg_relation_size(oid) > 0;
  if full_ones is not null then
    execute 'truncate ' || full_ones;
  end if;
end
$$;
update byrote_duties set next_at = '-infinity', holder = null, cursor = null;
"""


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """A server that all xdist workers share and the last one stops."""
    given = os.environ.get("BYROTE_TEST_DATABASE_URL")
    if given:
        yield given
        return
    # Not below pytest's own folder: it is closed to the user a root session runs the server as.
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
    home = Path(tempfile.gettempdir()) / f"byrote-test-{os.getuid()}-{session}"
    settings = {"shared_buffers": "256MB", "max_connections": "300"}
    with open_server(home, environ=os.environ, settings=settings, durable=False) as server:
        yield server.url
    # The last xdist worker finds no other one; the others leave the work to it.
    with contextlib.suppress(ServerInUse, NoServer):
        destroy(home)


@pytest.fixture(scope="session")
def database_url(server_url: str, worker_id: str) -> Iterator[str]:
    """A migrated database for this xdist worker."""
    name = f"byrote_{worker_id}_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}")  # type: ignore[call-overload]
    url = psycopg.conninfo.make_conninfo(server_url, dbname=name)
    migrate(DatabaseAddress(url), jitter=jitter)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(settable())
    yield url
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"drop database {name} with (force)")  # type: ignore[call-overload]


@pytest.fixture
def url(database_url: str) -> str:
    """The database, empty."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        while True:
            # A service that several tests share may be at its housekeeping just now.
            with contextlib.suppress(psycopg.errors.DeadlockDetected):
                connection.execute(EMPTY)
                return database_url


@pytest.fixture
def address(url: str) -> DatabaseAddress:
    return DatabaseAddress(url)


@pytest.fixture
def db(address: DatabaseAddress) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the test's own, in autocommit."""
    with address.open("test") as connection:
        yield connection


@pytest.fixture
def clock(db: psycopg.Connection[Any]) -> FakeClock:
    """Database time that stands still on `db` until the test moves it."""
    return FakeClock(db)


@pytest.fixture
def store(address: DatabaseAddress) -> Iterator[Store]:
    store = Store(address, jitter=jitter)
    yield store
    store.close()


@pytest.fixture
def app(url: str) -> Iterator[App]:
    app = App(url)
    yield app
    app.close()
