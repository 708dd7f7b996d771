# SPDX-License-Identifier: MIT
"""The pytest plugin for plain apps: `byrote_app`, `byrote_connection`, `byrote_clock` and more.

pytest imports it in every session, so it imports nothing of Byrote before a fixture is used.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import psycopg

    from byrote.assembly.app import App
    from byrote.testing.clock import FakeClock


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of the plugin."""
    parser.addini("byrote_app", "The app under test, such as shop.tasks:app.", default="")
    parser.addini(
        "byrote_database_url",
        "A server on which the tests may create databases; without it, one is started.",
        default="",
    )


@pytest.fixture(scope="session")
def byrote_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a migrated database for this session, and for this xdist worker alone."""
    from byrote.testing.database import scratch_database  # noqa: PLC0415 -- only if it is used.

    name = f"byrote_test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{os.getpid()}"
    given = request.config.getini("byrote_database_url")
    with _given(given) if given else _started() as server, scratch_database(server, name) as url:
        yield url


@contextlib.contextmanager
def _given(url: str) -> Iterator[str]:
    yield url


@contextlib.contextmanager
def _started() -> Iterator[str]:
    """A server that all xdist workers share and the last one stops."""
    from byrote.testing.database import scratch_server  # noqa: PLC0415 -- the same.

    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
    user = os.getuid() if hasattr(os, "getuid") else 0  # Windows has no user ids.
    # Not in pytest's own folder: it is closed to the user as whom root runs the server.
    home = Path(tempfile.gettempdir()) / f"byrote-tests-{user}-{session}"
    with scratch_server(home) as url:
        yield url


@pytest.fixture
def byrote_connection(byrote_database: str) -> "Iterator[psycopg.Connection[Any]]":
    """A connection in a transaction that is rolled back after the test."""
    from byrote.testing.database import rolled_back  # noqa: PLC0415 -- the same.

    with rolled_back(byrote_database) as connection:
        yield connection


@pytest.fixture
def byrote_app(
    request: pytest.FixtureRequest, byrote_connection: "psycopg.Connection[Any]"
) -> "Iterator[App]":
    """The app that the setting `byrote_app` names, in the transaction of `byrote_connection`."""
    from byrote.executors.runtime.loading import load_app  # noqa: PLC0415 -- the same.
    from byrote.testing.binding import use_connection  # noqa: PLC0415 -- the same.

    path = request.config.getini("byrote_app")
    if not path:
        pytest.fail(
            "Name the app under test in pytest's settings, for example "
            'byrote_app = "shop.tasks:app" in [tool.pytest.ini_options] of pyproject.toml.',
            pytrace=False,
        )
    with use_connection(load_app(path), byrote_connection) as app:
        yield app


@pytest.fixture
def byrote_clock(byrote_connection: "psycopg.Connection[Any]") -> "FakeClock":
    """Database time that stands still on `byrote_connection` until the test moves it."""
    from byrote.testing.clock import FakeClock  # noqa: PLC0415 -- the same.

    return FakeClock(byrote_connection)
