# SPDX-License-Identifier: MIT
"""`byrote enqueue --unique-key`, and what is shown of a key."""

import pytest

from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import byrote
from tests.support import Db, claim, count, finish, run_of, success

KEYED = ("enqueue", "report", "--unique-key", "report:11")


def test_it_prints_the_run_that_holds_the_key_and_a_note(url: str, db: Db) -> None:
    first, second = byrote(*KEYED, url=url), byrote(*KEYED, '{"other": 1}', url=url)

    assert first.code == second.code == 0
    assert "has not ended" not in first.err
    assert second.out == first.out
    assert "has not ended; nothing new was enqueued" in second.err
    assert run_of(db, first.out.strip()).unique_key == "report:11"
    assert count(db, "byrote_runs") == 1


def test_json_has_whether_it_was_created(url: str, db: Db) -> None:
    first, second = byrote(*KEYED, "--json", url=url), byrote(*KEYED, "--json", url=url)

    assert first.object["created"] is True
    assert (second.object["id"], second.object["created"]) == (first.object["id"], False)
    assert second.err == ""
    assert "created" not in byrote("enqueue", "report", "--json", url=url).object


def test_it_waits_for_the_run_that_holds_the_key(url: str, db: Db) -> None:
    byrote(*KEYED, url=url)
    [lease] = claim(db, tasks=["report@1"])
    assert byrote(*KEYED, "--wait=0.01", url=url).code == 1
    finish(db, [success(lease, "42")])
    fetch(db, queries.cancel([byrote(*KEYED, url=url).out.strip()]))

    assert run_of(db, lease.id).result == 42


def test_a_run_is_shown_with_its_key(url: str) -> None:
    run_id = byrote(*KEYED, url=url).out.strip()

    assert "unique key" in byrote("runs", "show", run_id, url=url).out
    assert byrote("runs", "show", run_id, "--json", url=url).object["unique_key"] == "report:11"
    [listed] = byrote("runs", "list", "--json", url=url).objects
    assert listed["unique_key"] == "report:11"


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_a_bad_key_is_refused_with_what_to_give(url: str, db: Db, key: str) -> None:
    said = byrote("enqueue", "report", "--unique-key", key, url=url)

    assert said.code == 2
    assert "1 to 200 printable characters" in said.err
    assert count(db, "byrote_runs") == 0


def test_many_lines_cannot_share_a_key(url: str, db: Db) -> None:
    said = byrote(*KEYED, "--many", "-", url=url, stdin="{}\n{}\n")

    assert said.code == 2
    assert "all lines would share the key" in said.err
    assert count(db, "byrote_runs") == 0
