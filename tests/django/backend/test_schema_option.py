# SPDX-License-Identifier: MIT
"""OPTIONS["SCHEMA"]: Byrote's tables in a schema of their own, in a project's database."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connections

from byrote.core.errors import BadOption
from byrote.django.backend.policy import read_options

ROOT = Path(__file__).parents[3]
SETTINGS = """
from tests.django.settings import *

OPTIONS = {{"SCHEMA": {schema!r}}}
TASKS = {{"default": {{"BACKEND": "byrote.django.Backend", "QUEUES": [], "OPTIONS": OPTIONS}}}}
DATABASES = {{"default": database("SHOP_DATABASE")}}
DATABASES["default"]["OPTIONS"]["options"] = {options!r}
DATABASE_ROUTERS = []
"""
SHOP = """
import django; django.setup()
from django.db import connection, transaction
from byrote.django.models import TaskRun
from tests.django.shop import tasks
with transaction.atomic():
    result = tasks.add.enqueue(1, 2)
with connection.cursor() as cursor:
    cursor.execute("show search_path")
    path = cursor.fetchone()[0]
import json; print(json.dumps([result.id, path, TaskRun.objects.count()]))
"""


@pytest.fixture
def fresh(server_url: str, worker_id: str) -> Iterator[str]:
    """An empty database."""
    name = f"django_schema_{worker_id}_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        yield psycopg.conninfo.make_conninfo(server_url, dbname=name)
        admin.execute(f"drop database {name} with (force)".encode())


def test_a_project_with_the_tables_in_a_schema(fresh: str, tmp_path: Path) -> None:
    """Migrated, enqueued, worked and read, with the schema behind the project's own."""
    path = "public,Queue X"
    options = '-c search_path=public,"Queue\\ X"'
    (tmp_path / "own_settings.py").write_text(SETTINGS.format(schema="Queue X", options=options))

    def python(*words: str) -> str:
        environ = {
            **os.environ,
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
            "DJANGO_SETTINGS_MODULE": "own_settings",
            "SHOP_DATABASE": fresh,
        }
        done = subprocess.run(
            [sys.executable, *words], cwd=ROOT, env=environ, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    python("-m", "django", "migrate", "--verbosity", "0")
    run_id, shown, runs = json.loads(python("-c", SHOP))
    python("-m", "django", "byrote", "worker", "--drain", "--hands", "1", "--no-reload")
    listed = python("-m", "django", "byrote", "runs", "list", "--json")
    checked = python("-m", "django", "check", "--database", "default")
    with psycopg.connect(fresh) as db:
        where = "select schemaname from pg_tables where tablename = %s"
        homes = [db.execute(where, (name,)).fetchall() for name in ("byrote_schema", "shop_note")]

    assert homes == [[("Queue X",)], [("public",)]]
    assert (shown.replace('"', "").replace(", ", ","), runs) == (path, 1)
    assert [(run["id"], run["status"]) for run in map(json.loads, listed.splitlines())] == [
        (run_id, "SUCCESSFUL")
    ]
    assert "no issues" in checked
    connections.close_all()


def test_a_bad_schema_is_refused() -> None:
    with pytest.raises(BadOption, match="SCHEMA: The schema 'pg_x' belongs to PostgreSQL"):
        read_options({"SCHEMA": "pg_x"})
