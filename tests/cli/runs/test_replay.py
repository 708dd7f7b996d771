# SPDX-License-Identifier: MIT
from typing import Any

import psycopg
import pytest

from tests.cli.console import byrote
from tests.support import enqueue, run_of

Database = psycopg.Connection[Any]
NEVER = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"


@pytest.mark.parametrize("words", [("{id}",), ("--requeue-id", "{id}")], ids=" ".join)
def test_a_replay_is_a_new_run_of_the_very_same_spec(
    url: str, db: Database, words: tuple[str, ...]
) -> None:
    [original] = enqueue(db)
    said = byrote("replay", *(word.format(id=original) for word in words), url=url)
    again, before = run_of(db, said.out.strip()), run_of(db, original)

    assert (again.replay_of, again.spec_json) == (original, before.spec_json)
    assert again.spec_hash == before.spec_hash
    assert again.id != original


@pytest.mark.parametrize("words", [("{hash}",), ("--requeue-hash", "{hash}")], ids=" ".join)
def test_a_hash_replays_its_newest_run(url: str, db: Database, words: tuple[str, ...]) -> None:
    ids = [byrote("enqueue", "t", '{"a": 1}', url=url).out.strip() for _ in range(2)]
    spec_hash = run_of(db, ids[0]).spec_hash.upper()
    said = byrote("replay", *(w.format(hash=spec_hash) for w in words), "--json", url=url)

    assert run_of(db, said.object["id"]).replay_of == ids[1]


def test_an_altered_spec_is_refused_by_its_hash(url: str, db: Database) -> None:
    [original] = enqueue(db)
    db.execute("update byrote_task_runs set spec_json = replace(spec_json, '\"n\"', '\"m\"')")
    said = byrote("replay", original, "--json", url=url)
    [[runs]] = db.execute("select count(*) from byrote_runs").fetchall()

    assert (said.code, said.failure["error"], runs) == (3, "altered_spec", 1)


@pytest.mark.parametrize("which", [NEVER, "0" * 64])
def test_what_never_ran_is_not_found(url: str, which: str) -> None:
    said = byrote("replay", which, url=url)

    assert (said.code, said.out) == (4, "")


def test_help_shows_one_way_to_name_a_run() -> None:
    shown = byrote("replay", "--help").out

    assert "[ID|HASH]" in shown
    assert "--requeue" not in shown


@pytest.mark.parametrize("words", [(), ("frob",), (NEVER, "--requeue-id", NEVER)], ids=" ".join)
def test_exactly_one_run_must_be_named(words: tuple[str, ...]) -> None:
    assert byrote("replay", *words).code == 2
