# SPDX-License-Identifier: MIT
"""One schema, two ways to it: Django's migrations and ours find each other's work done."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, models

from byrote.assembly.identity import jitter
from byrote.django.models import Blob, ChainLink, Event, Run, RunEvent
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import check, migrate, migrations, pending
from tests.django.driving import manage
from tests.django.shop import tasks

FOUND = """
select relname from pg_class
where relname like 'byrote%' and relkind in ('r', 'p', 'v', 'S')
  and relnamespace = 'public'::regnamespace
union all
select proname from pg_proc where proname like 'byrote%'
"""


@pytest.fixture
def bare(server_url: str, shop: dict[str, str]) -> Iterator[tuple[DatabaseAddress, dict[str, str]]]:
    """An empty database, and the environment in which the project uses it."""
    name = f"bare_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}")  # type: ignore[call-overload]
        url = psycopg.conninfo.make_conninfo(server_url, dbname=name)
        yield DatabaseAddress(url), {**shop, "SHOP_DATABASE": url}
        admin.execute(f"drop database {name} with (force)")  # type: ignore[call-overload]


type Bare = tuple[DatabaseAddress, dict[str, str]]


def relations(address: DatabaseAddress) -> set[str]:
    with address.open("test") as db:
        return {name for (name,) in db.execute(FOUND)}


def test_django_migrates_forwards_and_all_the_way_back(bare: Bare) -> None:
    address, shop = bare
    done = manage(shop, "migrate", "byrote")
    assert done.returncode == 0, done.stderr
    with address.open("test") as db:
        check(db)
    assert list(migrate(address, jitter=jitter)) == []

    done = manage(shop, "migrate", "byrote", "zero")
    assert done.returncode == 0, done.stderr
    assert relations(address) == set()


def test_django_finds_what_byrote_has_migrated(bare: Bare) -> None:
    address, shop = bare
    migrate(address, jitter=jitter)
    done = manage(shop, "migrate", "byrote")

    assert done.returncode == 0, done.stderr
    with address.open("test") as db:
        assert pending(db) == []


def test_models_and_migrations_agree() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_the_newest_sql_file_has_a_django_migration(bare: Bare) -> None:
    """A new file in store/migrations needs one, and what it makes must go in remove.sql."""
    address, shop = bare
    manage(shop, "migrate", "byrote")
    with address.open("test") as db:
        [[newest]] = db.execute("select max(version) from byrote_schema").fetchall()

    assert newest == migrations()[-1].version


def columns_of(model: type[models.Model]) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "select attname, format_type(atttypid, null) from pg_attribute"
            " where attrelid = %s::regclass and attnum > 0 and not attisdropped",
            [model._meta.db_table],
        )
        return dict(cursor.fetchall())


ALIKE = {"timestamp with time zone": "timestamp with time zone", "jsonb": "jsonb"}


def described() -> list[type[models.Model]]:
    return list(Run._meta.apps.get_app_config("byrote").get_models())


@pytest.mark.parametrize("model", described(), ids=lambda model: model.__name__)
def test_a_model_describes_every_column_as_it_is(model: type[models.Model]) -> None:
    stored = columns_of(model)
    told = {field.column: field.db_type(connection) for field in model._meta.concrete_fields}
    told.pop("pk", None)
    if model in (ChainLink, Event, RunEvent):
        stored.pop("xid")  # For readers of the whole log only; Django has no field for it.

    assert {name: kind for name, kind in told.items() if kind} == stored


def test_every_table_has_a_model_or_is_listed_as_internal() -> None:
    tables = {model._meta.db_table for model in described()}
    with connection.cursor() as cursor:
        cursor.execute(
            "select relname from pg_class where relname like 'byrote%%'"
            " and relkind in ('r', 'p', 'v') and not relispartition"
        )
        found = {name for (name,) in cursor.fetchall()}

    # What a flush must not empty: seeds, and the ledger of migrations; and views for people.
    seeds = {"byrote_schema", "byrote_duties", "byrote_artifact_home", "byrote_retention"}
    views = {
        "throughput_by_hour",
        "wait_by_queue",
        "errors_by_class",
        "slowest_tasks",
        "deployments",
    }
    assert found - tables == seeds | {f"byrote_{view}" for view in {*views, "deployments"}}


def test_the_view_of_runs_can_be_queried() -> None:
    result = tasks.add.enqueue(1, 2)

    assert Run.objects.filter(task_path__endswith="add", status="READY").count() == 1
    assert RunEvent.objects.filter(result_id=result.id).get().kind == "Enqueued"
    assert not Blob.objects.exists()
