# SPDX-License-Identifier: MIT
"""A project on django-tasks-db follows docs/how-to/from-django-tasks-db.md step by step."""

import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest

from tests.docs.test_django_pages import DATABASE, run
from tests.docs.test_readme import ROOT
from tests.programs import require_package

PAGE = ROOT / "docs/how-to/from-django-tasks-db.md"
OLD = """
INSTALLED_APPS += ["django_tasks_db", "shop"]
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["default", "mail"]}}
"""
TASKS = """
from django.tasks import task

@task
def add(a, b):
    return a + b

@task(queue_name="mail")
def letter(to):
    return to
"""


def said(language: str) -> str:
    """The one block of the page in a language; it stands in a list, indented."""
    text = PAGE.read_text(encoding="utf-8")
    [block] = text.split(f"```{language}\n")[1:]
    return dedent(block.partition("```")[0])


@pytest.fixture
def project(server_url: str, tmp_path: Path) -> Iterator[tuple[Path, psycopg.Connection]]:
    """A project that has django-tasks-db, with two tasks that wait."""
    require_package("django_tasks_db", "it is in the group dev")
    name = f"moving_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        run(tmp_path, "-m", "django", "startproject", "site_", ".")
        run(tmp_path, "-m", "django", "startapp", "shop")
        parts = {"port": "5432", **psycopg.conninfo.conninfo_to_dict(server_url), "dbname": name}
        add(tmp_path, DATABASE.format(**parts) + OLD)
        (tmp_path / "shop" / "tasks.py").write_text(TASKS, encoding="utf-8")
        run(tmp_path, "manage.py", "migrate", "--verbosity", "0")
        enqueue(tmp_path)
        with psycopg.connect(server_url, dbname=name, autocommit=True) as db:
            yield tmp_path, db
        admin.execute(f"drop database {name} with (force)".encode())


def add(folder: Path, text: str) -> None:
    with (folder / "site_" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(text)


def enqueue(folder: Path) -> None:
    call = "from shop.tasks import *; add.enqueue(1, 2); letter.enqueue('ada')"
    run(folder, "manage.py", "shell", "--command", call)


def test_old_tasks_end_where_they_began_and_new_ones_go_to_byrote(
    project: tuple[Path, "psycopg.Connection[tuple[str, ...]]"],
) -> None:
    folder, db = project
    add(folder, f'\nINSTALLED_APPS += ["byrote.django"]\n{said("python")}')
    run(folder, "manage.py", "migrate", "--verbosity", "0")
    db.execute(said("sql").encode())
    enqueue(folder)

    run(folder, "manage.py", "byrote", "worker", "--drain", "--hands", "1")
    batch = ("--backend", "old", "--queue-name", "*", "--batch", "--no-startup-delay")
    assert " ".join(["db_worker", *batch[:2], "--queue-name '*'", "--batch"]) in PAGE.read_text()
    run(folder, "manage.py", "db_worker", *batch)

    asked = "select backend_name, status from django_tasks_database_dbtaskresult"
    old = db.execute(asked).fetchall()
    assert old == [("old", "SUCCESSFUL")] * 2
    new = db.execute("select task_path, status from byrote_runs order by 1").fetchall()
    assert new == [("shop.tasks.add", "SUCCESSFUL"), ("shop.tasks.letter", "SUCCESSFUL")]
