# SPDX-License-Identifier: MIT
"""The test project on two separate databases, set up once per process."""

import os
from collections.abc import Iterator

import psycopg
import pytest

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.django.settings"
import django

django.setup()
# Tests of other rooms start processes that must know nothing of Django.
del os.environ["DJANGO_SETTINGS_MODULE"]

from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402

from tests.django.settings import database  # noqa: E402

VARIABLES = {"default": "SHOP_DATABASE", "other": "SHOP_OTHER_DATABASE"}


@pytest.fixture(scope="session")
def shop(server_url: str, worker_id: str) -> Iterator[dict[str, str]]:
    """The environment in which `manage.py` finds the project and its migrated databases."""
    names = {alias: f"shop_{alias}_{worker_id}_{os.getpid()}" for alias in VARIABLES}
    environment = {"DJANGO_SETTINGS_MODULE": "tests.django.settings"}
    with psycopg.connect(server_url, autocommit=True) as admin, pytest.MonkeyPatch.context() as mp:
        for alias, name in names.items():
            admin.execute(f"create database {name}")  # type: ignore[call-overload]
            url = psycopg.conninfo.make_conninfo(server_url, dbname=name)
            environment[VARIABLES[alias]] = url
            mp.setenv(VARIABLES[alias], url)
            connections.settings[alias].update(database(VARIABLES[alias]))
    for alias in names:
        call_command("migrate", verbosity=0, database=alias)
    yield environment
    connections.close_all()
    with psycopg.connect(server_url, autocommit=True) as admin:
        for name in names.values():
            admin.execute(f"drop database {name} with (force)")  # type: ignore[call-overload]


# Not Django's flush: truncating some hundred partitions after every test takes its time.
EMPTY = """
delete from byrote_task_runs; delete from byrote_archive; delete from byrote_dead;
delete from byrote_events; delete from byrote_outputs; delete from byrote_workers;
delete from byrote_queues; delete from byrote_steps; delete from byrote_signals;
delete from byrote_once; delete from byrote_artifacts; delete from byrote_artifact_blobs;
delete from byrote_provenance; delete from byrote_memo; delete from byrote_chain;
delete from byrote_periodic_tasks;
delete from shop_note;
update byrote_duties set next_at = '-infinity', holder = null, cursor = null;
"""


@pytest.fixture(autouse=True)
def _empty_shop(shop: dict[str, str]) -> Iterator[None]:
    """What a test leaves in the databases is gone before the next."""
    yield
    if connections["default"].in_atomic_block:
        return  # A TestCase: its transaction spans the class, and cleans up by itself.
    for alias, variable in VARIABLES.items():
        connections[alias].close()
        with psycopg.connect(shop[variable], autocommit=True) as db:
            db.execute(EMPTY)
