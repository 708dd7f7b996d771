# SPDX-License-Identifier: MIT
import psycopg
import pytest

from byrote.store.migrate import migrations
from tests.cli.console import byrote

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
def test_without_a_schema_every_command_says_how_to_get_one(
    bare_url: str, words: tuple[str, ...]
) -> None:
    said = byrote(*words, "--json", url=bare_url)

    assert said.code == 3
    assert said.failure["error"] == "schema_mismatch"
    assert "Run `byrote migrate`" in said.failure["message"]


def test_the_printed_sql_is_the_files_and_needs_no_database(bare_url: str) -> None:
    said = byrote("migrate", "--sql")
    with psycopg.connect(bare_url) as connection:
        connection.execute(said.out.encode())
        found = connection.execute("select to_regclass('byrote_task_runs')::text").fetchone()

    assert all(step.text.decode() in said.out for step in migrations())
    assert found == ("byrote_task_runs",)
