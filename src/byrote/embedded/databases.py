# SPDX-License-Identifier: MIT
"""One database per project on the embedded server: no project executes the runs of another.

A project is the nearest folder, from the current one upwards, that holds `byrote.toml`,
`pyproject.toml`, `manage.py` or `.git`; without any of them it is the current folder. Its database
is named after the folder and a hash of its path, and has the path as its comment.
BYROTE_PG_DATABASE names another one, for folders that are to share one.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

MARKS: Final = ("byrote.toml", "pyproject.toml", "manage.py", ".git")
"""The content of a project's folder."""
SLUG_MAX: Final = 40

_IS_THERE: Final = "select 1 from pg_database where datname = %s"
_CREATE: Final = sql.SQL("create database {} template template0")
_DESCRIBE: Final = sql.SQL("comment on database {} is {}")
_LIST: Final = """
select datname, pg_database_size(oid), shobj_description(oid, 'pg_database')
from pg_database
where not datistemplate and datname <> 'postgres'
order by datname
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A database of the embedded server."""

    name: str
    size_bytes: int
    project: str | None
    """The folder it was created for; None for one that was created by name."""


def project_of(folder: Path) -> Path:
    """The project that a folder belongs to."""
    here = folder.resolve()
    for above in (here, *here.parents):
        if any((above / mark).exists() for mark in MARKS):
            return above
    return here


def name_of(project: Path) -> str:
    """The name of a project's database: always the same for the same path."""
    slug = re.sub(r"[^a-z0-9]+", "_", project.name.lower()).strip("_")[:SLUG_MAX]
    return f"{slug or 'project'}_{hashlib.sha256(os.fsencode(project)).hexdigest()[:8]}"


def own_url(server: str, folder: Path, environ: Mapping[str, str]) -> str:
    """The URL of the database for a working folder; creates the database if necessary."""
    named = environ.get("BYROTE_PG_DATABASE")
    return named_url(server, named) if named else project_url(server, folder)


def project_url(server: str, folder: Path) -> str:
    """The URL of the database of a folder's project; creates the database if necessary."""
    project = project_of(folder)
    return named_url(server, name_of(project), project=project)


def named_url(server: str, name: str, *, project: Path | None = None) -> str:
    """The URL of a database on this server; creates the database if necessary."""
    with psycopg.connect(server, autocommit=True) as connection:
        if connection.execute(_IS_THERE, (name,)).fetchone() is None:
            _create(connection, name, project)
    return urlsplit(server)._replace(path=f"/{quote(name, safe='')}").geturl()


def databases(server: str) -> list[Database]:
    """The databases of a server, by name."""
    with psycopg.connect(server, autocommit=True) as connection:
        return [Database(*row) for row in connection.execute(_LIST)]


def _create(connection: psycopg.Connection[Any], name: str, project: Path | None) -> None:
    create = _CREATE.format(sql.Identifier(name))
    try:
        connection.execute(create)
    except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
        return  # Another process has created it just now.
    if project is not None:
        describe = _DESCRIBE.format(sql.Identifier(name), sql.Literal(str(project)))
        connection.execute(describe)
