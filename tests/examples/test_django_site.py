# SPDX-License-Identifier: MIT
"""examples/django_site as its readers use it: real pages, the real worker, its own tests."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from tests.support import until

SITE = Path(__file__).parents[2] / "examples" / "django_site"
VISIT = """
import django, pathlib
django.setup()
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
visitor = Client(headers={"host": "localhost"})
assert visitor.post("/", {"email": "ada@example.com"}).status_code == 200
file = SimpleUploadedFile("books.csv", pathlib.Path("books.csv").read_bytes())
print(visitor.post("/imports/", {"file": file}).url)
"""
LOOK = """
import sys, django
django.setup()
from django.test import Client
print(Client(headers={"host": "localhost"}).get(sys.argv[1]).content.decode())
"""

type Env = Mapping[str, str]


@pytest.fixture
def env(server_url: str, tmp_path: Path) -> Iterator[Env]:
    """The environment of the site on an empty database."""
    name = f"bookshop_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        url = psycopg.conninfo.make_conninfo(server_url, dbname=name)
        more = {"DATABASE_URL": url, "MAIL_FOLDER": str(tmp_path / "mail"), "DEBUG": "no"}
        more |= {"DJANGO_SETTINGS_MODULE": "bookshop.settings", "PYTHONDONTWRITEBYTECODE": "1"}
        yield {**os.environ, **more}
        for suffix in ("", "test_"):
            admin.execute(f"drop database if exists {suffix}{name} with (force)".encode())


def python(env: Env, *words: str) -> str:
    """Run Python in the site's folder; what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=SITE,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_shop_welcomes_imports_and_reports(env: Env) -> None:
    python(env, "manage.py", "migrate", "--verbosity", "0")
    progress = python(env, "-c", VISIT).strip()
    assert json.loads(python(env, "-c", LOOK, progress))["percent"] == 0

    python(env, "manage.py", "byrote", "worker", "--drain", "--hands", "1")

    told = json.loads(python(env, "-c", LOOK, progress))
    assert (told["percent"], told["message"], told["finished"]) == (100, "importing", True)
    assert len(told["refused"]) == 1
    [letter] = Path(env["MAIL_FOLDER"]).iterdir()
    assert "To: ada@example.com" in letter.read_text(encoding="utf-8")
    with psycopg.connect(env["DATABASE_URL"]) as db:
        states = db.execute("select task_path, status from byrote_runs order by 1").fetchall()
    assert states == [
        ("shop.tasks.import_books", "SUCCESSFUL"),
        ("shop.tasks.welcome", "SUCCESSFUL"),
    ]


LATE = "update byrote_periodic_tasks set next_at = byrote_now() where name = 'nightly-report'"


def test_the_report_is_written_when_its_night_has_come(env: Env) -> None:
    python(env, "manage.py", "migrate", "--verbosity", "0")
    words = ["manage.py", "byrote", "worker", "--hands", "1"]
    worker = subprocess.Popen(
        [sys.executable, *words], cwd=SITE, env=env, stderr=subprocess.DEVNULL
    )
    try:
        with psycopg.connect(env["DATABASE_URL"], autocommit=True) as db:
            until(lambda: db.execute(LATE).rowcount)
            until(lambda: db.execute("select 1 from shop_report").fetchall())
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()


def test_the_shop_is_complete_and_its_own_tests_pass(env: Env) -> None:
    python(env, "manage.py", "makemigrations", "--check", "--dry-run")
    python(env, "manage.py", "check")
    python(env, "manage.py", "test", "--verbosity", "0")
