# SPDX-License-Identifier: MIT
import itertools
import os
from collections.abc import Iterator

import psycopg
import pytest

_numbers = itertools.count()


@pytest.fixture
def bare_url(server_url: str) -> Iterator[str]:
    """A database without a schema."""
    name = f"byrote_bare_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}")  # type: ignore[call-overload]
    yield psycopg.conninfo.make_conninfo(server_url, dbname=name)
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"drop database {name} with (force)")  # type: ignore[call-overload]
