# SPDX-License-Identifier: MIT
"""A newcomer follows docs/tutorial/django.md word for word, then docs/how-to/django-testing.md."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import django
import psycopg
import pytest

from tests.docs.test_readme import blocks

DATABASE = """
DATABASES = {{
    "default": {{
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "{dbname}", "USER": "{user}", "HOST": "{host}", "PORT": "{port}",
        "TEST": {{"NAME": "{dbname}_test"}},
    }}
}}
"""


def files(page: str) -> dict[str, str]:
    """The page's code blocks by the file that their first line names; a second goes below."""
    found: dict[str, str] = {}
    for block in blocks(page, "python"):
        if block.startswith("# "):
            name = block.split("\n", 1)[0].removeprefix("# ").strip()
            found[name] = f"{found.get(name, '')}{block}\n"
    return found


@pytest.fixture
def folder(server_url: str, tmp_path: Path) -> Iterator[Path]:
    """A fresh project as `startproject` and `startapp` leave it, on an empty database."""
    name = f"newcomer_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}")  # type: ignore[call-overload]
        run(tmp_path, "-m", "django", "startproject", "site_", ".")
        run(tmp_path, "-m", "django", "startapp", "shop")
        parts = {"port": "5432", **psycopg.conninfo.conninfo_to_dict(server_url), "dbname": name}
        with (tmp_path / "site_" / "settings.py").open("a", encoding="utf-8") as settings:
            settings.write(DATABASE.format(**parts))
        yield tmp_path
        for suffix in ("", "_test"):
            admin.execute(f"drop database if exists {name}{suffix} with (force)")  # type: ignore[call-overload]


def run(folder: Path, *words: str) -> str:
    """Run Python in the project's folder, as a newcomer would; what it printed."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_newcomer_has_a_task_running(folder: Path) -> None:
    told = files("docs/tutorial/django.md")
    with (folder / "site_" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(told.pop("settings.py"))
        settings.write('\nINSTALLED_APPS += ["shop"]\n')
        if django.VERSION < (6, 1):  # Later versions print mails by default.
            settings.write('EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"\n')
    for name, text in told.items():
        (folder / name).write_text(text, encoding="utf-8")
    run(folder, "manage.py", "migrate", "--verbosity", "0")
    call = "from shop.signup import *; print('id', sign_up('ada', 'ada@example.com')[1].id)"
    said = run(folder, "manage.py", "shell", "--command", call)
    result_id = next(line[3:] for line in said.splitlines() if line.startswith("id "))
    run(folder, "manage.py", "byrote", "worker", "--drain")
    look = f"from shop.look import *; print(*outcome('{result_id}'))"

    assert "SUCCESSFUL 1 []" in run(folder, "manage.py", "shell", "--command", look)
    assert result_id[:8] in run(folder, "manage.py", "byrote", "runs", "list")
    assert "default" in run(folder, "manage.py", "byrote", "queues")
    assert "monday-mail" in run(folder, "manage.py", "byrote", "schedules")

    [(name, text)] = files("docs/how-to/django-testing.md").items()
    (folder / name).write_text(text, encoding="utf-8")
    assert "Ran 2 tests" in run(folder, "manage.py", "test", "shop")
