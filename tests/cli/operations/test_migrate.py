# SPDX-License-Identifier: MIT
import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from byrote.embedded.binaries import find_binaries
from byrote.store.migrate import migrations
from tests.cli.console import Process, byrote

APP = """
from byrote import App

app = App()

@app.task
def add(a, b):
    return a + b
"""
NAMES = [step.name for step in migrations()]


def test_migrating_twice_does_it_once(bare_url: str) -> None:
    first = byrote("migrate", "--json", url=bare_url)
    second = byrote("migrate", url=bare_url)

    assert first.object == {"applied": NAMES}
    assert (second.code, second.out) == (0, "Nothing to do: the schema is up to date.\n")


def test_check_exits_with_3_while_behind_and_changes_nothing(bare_url: str) -> None:
    behind = byrote("migrate", "--check", "--json", url=bare_url)
    still = byrote("migrate", "--check", url=bare_url)
    byrote("migrate", url=bare_url)
    after = byrote("migrate", "--check", "--json", url=bare_url)

    assert (behind.code, behind.object) == (3, {"up_to_date": False, "missing": NAMES})
    assert (still.code, "Run `byrote migrate`" in still.out) == (3, True)
    assert (after.code, after.object["up_to_date"]) == (0, True)


@pytest.mark.parametrize("words", [("migrate",), ("migrate", "--check"), ("runs", "list")])
def test_a_schema_ahead_of_us_is_3_and_asks_for_an_upgrade(
    bare_url: str, words: tuple[str, ...]
) -> None:
    byrote("migrate", url=bare_url)
    with psycopg.connect(bare_url) as connection:
        connection.execute("insert into byrote_schema values (9999, '9999_later', 'x')")
    said = byrote(*words, url=bare_url)

    assert said.code == 3
    assert "Upgrade Byrote" in said.err


@pytest.mark.parametrize("words", [("runs", "list"), ("queues",), ("enqueue", "t")], ids=" ".join)
def test_without_a_schema_every_command_explains_how_to_get_one(
    bare_url: str, words: tuple[str, ...]
) -> None:
    said = byrote(*words, "--json", url=bare_url)

    assert said.code == 3
    assert said.failure["error"] == "schema_mismatch"
    assert "Run `byrote migrate`" in said.failure["message"]


def test_the_printed_sql_is_the_files_and_needs_no_database() -> None:
    said = byrote("migrate", "--sql")

    assert all(step.text.decode() in said.out for step in migrations())


def test_a_worker_accepts_a_database_that_psql_has_migrated(bare_url: str, tmp_path: Path) -> None:
    script = byrote("migrate", "--sql").out
    psql = [find_binaries(os.environ).path / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    for expected in (0, 3):  # The second time it fails, and changes nothing.
        done = subprocess.run(
            [*psql, bare_url], input=script, text=True, capture_output=True, check=False
        )
        assert done.returncode == expected, done.stderr
    (tmp_path / "shop.py").write_text(APP)
    enqueued = byrote("enqueue", "add", '{"a": 1, "b": 2}', url=bare_url)
    words = ("worker", "shop:app", "--drain", "--hands", "1")
    with Process(*words, url=bare_url, folder=tmp_path) as worker:
        code = worker.ended().code
    shown = byrote("runs", "show", enqueued.out.strip(), "--json", url=bare_url)

    assert (enqueued.code, code, shown.object["status"]) == (0, 0, "SUCCESSFUL")
    assert byrote("migrate", "--json", url=bare_url).object == {"applied": []}


@pytest.mark.parametrize(
    "words", [("migrate",), ("migrate", "--check"), ("worker", "shop:app", "--drain")], ids=" ".join
)
def test_a_database_of_a_development_version_is_3_and_must_be_recreated(
    bare_url: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    byrote("migrate", url=bare_url)
    with psycopg.connect(bare_url) as connection:
        connection.execute("update byrote_schema set name = '0001_runs', checksum = 'x'")
        connection.execute("insert into byrote_schema values (2, '0002_outputs', 'x')")
    with Process(*words, url=bare_url, folder=tmp_path) as process:
        said = process.ended()

    assert said.code == 3
    assert "made by a development version of Byrote" in said.err
    assert "Recreate it" in said.err
