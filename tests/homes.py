# SPDX-License-Identifier: MIT
"""A second installation of Byrote, in a schema of its own beside the one in `public`."""

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

from byrote.assembly.identity import jitter
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.testing.clock import settable
from tests.conftest import EMPTY

HOSTILE = "Sel\"ect.\\ %(id)s :x '; é"
"""A name with everything that a careless quotation trips over."""


def home_in(url: str, schema: str = HOSTILE) -> DatabaseAddress:
    """The address of a migrated, empty schema, which is made if it is not there."""
    address = DatabaseAddress(url, schema=schema)
    if migrate(address, jitter=jitter):
        with address.open("test") as connection:
            connection.execute(settable())
    with address.open("test") as connection:
        while True:
            with contextlib.suppress(psycopg.errors.DeadlockDetected):
                connection.execute(EMPTY.encode())
                return address


@contextlib.contextmanager
def opened(address: DatabaseAddress) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the test's own whose search path is the schema."""
    with address.open("test") as connection:
        yield connection
