# SPDX-License-Identifier: MIT
"""System checks that report wrong settings before they cause errors. Nothing here connects."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 -- Django's.
from django.db import connections

from byrote.core.errors import BadOption
from byrote.core.spec import check_name
from byrote.django.backend import policy

APP = "byrote.django"
POOLER_PORTS = frozenset({"6432", "6543"})
"""The usual ports of PgBouncer and similar poolers."""


def faults_of(backend: Any) -> Iterator[CheckMessage]:
    """Check the settings of one backend; yields the errors and warnings. Never connects."""
    where = f"TASKS[{backend.alias!r}]"
    if not apps.is_installed(APP):
        yield Error(f"{where} needs {APP!r} in INSTALLED_APPS.", id="byrote.E001")
        return
    for fault in policy.faults(backend.options):
        yield Error(f"{where}: OPTIONS: {fault}", id="byrote.E002")
    yield from _names(backend, where)
    try:
        options = policy.read_options(backend.options)
    except BadOption:
        return
    database = options.database or backend.database
    if database not in connections:
        known = ", ".join(connections)
        yield Error(
            f"{where}: the database {database!r} is not in DATABASES.",
            hint=f"There are: {known}.",
            id="byrote.E003",
        )
        return
    yield from _database(where, database, options)


def _names(backend: Any, where: str) -> Iterator[CheckMessage]:
    for what, name in [("backend", backend.alias), *(("queue", q) for q in backend.queues)]:
        try:
            check_name(what, name)
        except BadOption as error:
            yield Error(f"{where}: {error}", id="byrote.E006")


def _database(where: str, database: str, options: policy.BackendOptions) -> Iterator[CheckMessage]:
    wrapper = connections[database]
    if wrapper.vendor != "postgresql":
        yield Error(
            f"{where}: the database {database!r} is {wrapper.display_name}; Byrote's runs live in "
            "PostgreSQL.",
            hint="Name a PostgreSQL database with OPTIONS['DATABASE'].",
            id="byrote.E004",
        )
        return
    if wrapper.Database.__name__ != "psycopg":
        yield Error(
            f"{where}: Django uses psycopg2 for {database!r}; Byrote needs psycopg 3.",
            hint="Install psycopg[binary]; Django prefers it when both are there.",
            id="byrote.E005",
        )
    if options.listen and str(wrapper.settings_dict.get("PORT")) in POOLER_PORTS:
        yield Warning(
            f"{where}: {database!r} looks like a pooler, where LISTEN may not work.",
            hint="Set OPTIONS['LISTEN'] = False if it pools transactions; workers then poll.",
            id="byrote.W001",
        )
    if database != "default":
        yield Warning(
            f"{where}: runs live in {database!r}, so tasks do not share transactions with the "
            "default database.",
            hint="Use byrote.django.enqueue_on_commit() where business data must be there first; "
            "silence byrote.W002 when you do.",
            id="byrote.W002",
        )


def faults_of_worker(backend: Any) -> list[CheckMessage]:
    """Return the errors and warnings to show before a worker of this backend starts."""
    found = list(faults_of(backend))
    if settings.DEBUG:
        found.append(
            Warning(
                "DEBUG is on: log lines and error pages show settings, and code is watched.",
                hint="Set DEBUG = False in production.",
                id="byrote.W003",
            )
        )
    return found
