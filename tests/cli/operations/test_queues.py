# SPDX-License-Identifier: MIT
from typing import Any

import psycopg
import pytest

from tests.cli.console import byrote
from tests.support import claim, enqueue, register

Database = psycopg.Connection[Any]


@pytest.mark.parametrize("words", [(), ("list",)], ids=["short", "long"])
def test_queues_are_listed_with_what_waits_in_them(
    url: str, db: Database, words: tuple[str, ...]
) -> None:
    enqueue(db, 2, queue="mail")
    enqueue(db, 1, queue="mail", run_after="1h")
    [queue] = byrote("queues", *words, "--json", url=url).objects

    assert (queue["queue"], queue["ready"], queue["waiting"]) == ("mail", 2, 1)
    assert queue["paused_at"] is None


def test_pause_and_resume_decide_whether_a_queue_is_claimed_from(url: str, db: Database) -> None:
    enqueue(db, queue="mail")
    paused = byrote("queues", "pause", "mail", url=url)
    table = byrote("queues", url=url).out
    refused = claim(db, queues=["mail"])
    resumed = byrote("queues", "resume", "mail", "--json", url=url)

    assert (paused.code, paused.out, refused) == (0, "mail is paused.\n", [])
    assert table.splitlines()[1].split()[:3] == ["mail", "paused", "1"]
    assert resumed.object == {"queue": "mail", "paused": False}
    assert len(claim(db, queues=["mail"])) == 1


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_an_unknown_queue_is_not_found_and_the_known_ones_are_named(
    url: str, db: Database, command: str
) -> None:
    enqueue(db, queue="mail")
    said = byrote("queues", command, "mial", url=url)

    assert said.code == 4
    assert said.err == "byrote: No queue named 'mial'. Known: mail.\n"
    assert len(byrote("queues", "--json", url=url).objects) == 1


def test_an_empty_list_of_queues_has_a_message(url: str) -> None:
    assert byrote("queues", url=url).out == "No queue has been used yet.\n"


def test_workers_are_listed_and_the_silent_ones_are_gone(url: str, db: Database) -> None:
    register(db, "w-1", "mail")
    register(db, "w-2", "mail", "default")
    db.execute("update byrote_workers set seen_at = now() - interval '1 hour' where idle is false "
               "and worker_id = 'w-2'")  # fmt: skip
    first, second = byrote("workers", "--json", url=url).objects
    lines = byrote("workers", "list", url=url).out.splitlines()

    assert (first["worker"], first["alive"], second["alive"]) == ("w-1", True, False)
    assert [line.split()[:3] for line in lines[1:]] == [
        ["w-1", "busy", "mail"],
        ["w-2", "gone", "mail,default"],
    ]
