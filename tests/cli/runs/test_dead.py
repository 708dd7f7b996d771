# SPDX-License-Identifier: MIT
from typing import Any

import psycopg
import pytest

from byrote.store.connect import DatabaseAddress
from tests.cli.console import byrote
from tests.store.test_locks import locked
from tests.support import claim, enqueue, finish, verdict

Database = psycopg.Connection[Any]


def resolve_crash(db: Database, queue: str = "default") -> str:
    enqueue(db, queue=queue)
    [run] = claim(db, queues=[queue])
    finish(db, [verdict(run, "F")])
    return str(run.id)


def test_dead_letters_are_listed_and_shown(url: str, db: Database) -> None:
    first, second = resolve_crash(db), resolve_crash(db, "mail")
    listed = byrote("dead", "--json", url=url).objects

    assert [row["id"] for row in listed] == [second, first]
    of_mail = byrote("dead", "list", "--queue", "mail", "--json", url=url).objects
    assert [row["id"] for row in of_mail] == [second]
    assert byrote("dead", "show", first, "--json", url=url).object["id"] == first
    assert first in byrote("dead", url=url).out


def test_a_requeued_letter_is_ready_and_a_deleted_one_gone(url: str, db: Database) -> None:
    back, gone = resolve_crash(db), resolve_crash(db)

    assert byrote("dead", "requeue", back, url=url).code == 0
    assert byrote("dead", "delete", gone, "--json", url=url).object["done"] is True
    assert byrote("dead", url=url).out == "No dead letters.\n"
    assert db.execute("select status from byrote_task_runs").fetchall() == [("READY",)]


def test_what_is_not_dead_is_not_found(url: str, db: Database) -> None:
    [run] = enqueue(db)

    for verb in ("show", "requeue", "delete"):
        assert byrote("dead", verb, str(run), url=url).code == 4


@pytest.mark.parametrize("verb", ["requeue", "delete"])
def test_a_locked_letter_is_reported_and_holds_up_no_other(
    url: str, db: Database, address: DatabaseAddress, verb: str
) -> None:
    stuck, free = resolve_crash(db), resolve_crash(db)
    with locked(address, "byrote_dead", "result_id", stuck):
        said = byrote("dead", verb, stuck, free, url=url)
        told = byrote("dead", verb, stuck, "--json", url=url)

    assert said.code == told.code == 1
    first, second, last = said.out.splitlines()
    assert first == f"{stuck}  unchanged: locked by another transaction"
    assert second.startswith(free)
    assert "unchanged" not in second
    assert last == "1 run is locked by another transaction; try again."
    assert (told.object["done"], told.object["locked"]) == (False, True)
    assert byrote("dead", verb, stuck, url=url).code == 0
