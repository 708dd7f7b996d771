# SPDX-License-Identifier: MIT
"""The system check that connects: whether the tables exist in the form this Byrote needs."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 -- Django's.
from django.db import DatabaseError, connections

from byrote.core.errors import SchemaMismatch
from byrote.django import compat
from byrote.django.backend.backend import Backend
from byrote.django.backend.database import raw_connection, schema_of
from byrote.store import migrate
from byrote.store.queries.database import in_search_path
from byrote.store.runners.sync import fetch


def faults_of_schema(databases: Sequence[str], **_more: Any) -> list[CheckMessage]:
    """Whether each database that holds runs has the schema this Byrote needs."""
    ours = [one for one in compat.task_backends.all() if isinstance(one, Backend)]
    sound = [one for one in ours if not any(m.is_serious() for m in one.check())]
    homes = {one.database: one.alias for one in sound}
    return [
        message
        for database, alias in homes.items()
        if database in databases
        for message in _schema(database, alias)
    ]


def _schema(database: str, alias: str) -> Iterator[CheckMessage]:
    try:
        with raw_connection(connections[database]) as raw:
            home = schema_of(database)
            missing = [step.name for step in migrate.pending(raw, home)]
            hidden = home is not None and not fetch(raw, in_search_path(home))[0]
    except SchemaMismatch as error:
        yield Error(f"TASKS[{alias!r}]: database {database!r}: {error}", id="byrote.E010")
    except (DatabaseError, psycopg.Error) as error:
        yield Error(f"TASKS[{alias!r}]: {database!r} did not answer: {error}", id="byrote.E011")
    else:
        if hidden:
            yield Warning(
                f"TASKS[{alias!r}]: the search path of {database!r} lacks the SCHEMA {home!r}, so "
                "Byrote's models and admin do not find their tables.",
                hint="Add it, behind your own: "
                f"DATABASES[{database!r}]['OPTIONS']['options'] = '-c search_path=public,…'.",
                id="byrote.W011",
            )
        # No error: `manage.py migrate`, which helps, checks first. And nothing at all to that one.
        if missing and sys.argv[1:2] != ["migrate"]:
            yield Warning(
                f"TASKS[{alias!r}]: the database {database!r} lacks {', '.join(missing)}.",
                hint=f"Run `manage.py migrate --database {database}`.",
                id="byrote.W010",
            )
