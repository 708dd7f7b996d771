# SPDX-License-Identifier: MIT
import re
from typing import Any

import psycopg
import pytest

from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from tests.cli.console import byrote
from tests.store.test_locks import locked
from tests.support import claim, enqueue, run_of, success, verdict

Database = psycopg.Connection[Any]
NEVER = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"


def failed(db: Database, **error: Any) -> str:
    """A run among the dead letters, with this error."""
    [run_id] = enqueue(db)
    fault = {"kind": "raised", "type": "ValueError", "message": "no", "attempt": 1, **error}
    fetch(db, queries.finish([verdict(claim(db)[0], "F", error=fault)]))
    return run_id


def test_the_newest_run_is_listed_first_and_without_payload(url: str, db: Database) -> None:
    ids = enqueue(db, 3)
    said = byrote("runs", "list", "--json", url=url)

    assert [run["id"] for run in said.objects] == ids[::-1]
    assert not said.objects[0].keys() & {"spec", "spec_json", "result", "kwargs"}
    assert re.fullmatch(r"[0-9T:.-]+Z", said.objects[0]["enqueued_at"])


def test_the_table_is_aligned_below_its_heads(url: str, db: Database) -> None:
    enqueue(db, 1, task="a", queue="q")
    enqueue(db, 1, task="much.longer", queue="long-queue")
    head, *lines = byrote("runs", "list", url=url).out.splitlines()

    assert head.split()[:4] == ["ID", "STATUS", "TASK", "QUEUE"]
    assert len(lines) == 2
    assert all(line[head.index("QUEUE") - 1] == " " for line in lines)
    assert {line[head.index("QUEUE") :].split()[0] for line in lines} == {"q", "long-queue"}


@pytest.mark.parametrize(
    "words",
    [
        ("--status", "waiting"),
        ("--queue", "q"),
        ("--task", "wanted"),
        ("--label", "order=42", "--label", "who=me"),
    ],
    ids=" ".join,
)
def test_each_filter_finds_its_run_and_no_other(
    url: str, db: Database, words: tuple[str, ...]
) -> None:
    enqueue(db, 2)
    labels = {"order": "42", "who": "me", "more": "x"}
    [wanted] = enqueue(db, task="wanted", queue="q", run_after="10m", labels=labels)
    enqueue(db, labels={"order": "42"})

    assert [run["id"] for run in byrote("runs", "list", *words, "--json", url=url).objects] == [
        wanted
    ]


def test_runs_of_one_spec_are_found_by_its_hash(url: str, db: Database) -> None:
    ids = enqueue(db, 2)
    found = byrote("runs", "list", "--hash", run_of(db, ids[0]).spec_hash, "--json", url=url)

    assert [run["id"] for run in found.objects] == ids[:1]


def test_before_leads_to_the_next_page(url: str, db: Database) -> None:
    ids = enqueue(db, 5)
    page = byrote("runs", "list", "--limit", "2", "--before", ids[3], "--json", url=url)

    assert [run["id"] for run in page.objects] == [ids[2], ids[1]]


def test_a_list_without_matches_has_a_message(url: str) -> None:
    assert byrote("runs", "list", url=url).out == "No runs match.\n"
    assert byrote("runs", "list", "--json", url=url).out == ""


def test_show_prints_spec_and_result_verbatim(url: str, db: Database) -> None:
    given = '{"b":  1.0, "a": 1180591620717411303424}'
    run_id = byrote("enqueue", "t", given, url=url).out.strip()
    fetch(db, queries.finish([success(claim(db)[0], '{"z":1.0}')]))
    said = byrote("runs", "show", run_id, "--json", url=url)

    assert f'"kwargs":{given}' in said.out
    assert '"result":{"z":1.0}' in said.out
    assert said.object["status"] == "SUCCESSFUL"


def test_show_prints_every_error_with_its_traceback(url: str, db: Database) -> None:
    run_id = failed(db, worker="w-1", traceback="Traceback:\n  here\n", message="bell \x07")
    said = byrote("runs", "show", run_id, url=url)

    assert "attempt 1 on w-1: raised\n  ValueError: bell \\x07\n  Traceback:\n    here" in said.out
    assert "status             FAILED" in said.out


def test_no_text_of_a_run_reaches_the_terminal_as_a_command(url: str, db: Database) -> None:
    run_id = failed(db, message="\x1b[2J\x9b2J")

    for words in (("list",), ("show", run_id)):
        assert not {"\x1b", "\x9b"} & set(byrote("runs", *words, url=url).out)


@pytest.mark.parametrize("command", ["show", "cancel", "retry"])
def test_an_unknown_run_is_not_found(url: str, command: str) -> None:
    said = byrote("runs", command, NEVER, "--json", url=url)

    assert said.code == 4
    assert said.failure["error"] == "run_not_found"


def test_an_id_may_be_shortened_while_it_is_the_only_one(url: str, db: Database) -> None:
    ids = enqueue(db, 2)
    for end in "0f":
        own = f"{ids[0][:-1]}{end}"
        db.execute("update byrote_task_runs set result_id = %s where result_id = %s", (own, ids[0]))
        ids[0] = own
        assert byrote("runs", "show", own[:-1], "--json", url=url).object["id"] == own

    several = byrote("runs", "show", ids[0][:8], url=url)
    nobody = byrote("runs", "show", "00000000", url=url)

    assert (several.code, nobody.code) == (2, 4)
    assert "write more characters of the id" in several.err


def test_cancel_stops_a_waiting_run_and_asks_for_a_running_one(url: str, db: Database) -> None:
    [running] = enqueue(db)
    claim(db)
    [ready] = enqueue(db)
    said = byrote("runs", "cancel", running, ready, "--json", url=url)

    assert said.code == 0
    assert [run["status"] for run in said.objects] == ["RUNNING", "CANCELLED"]
    assert run_of(db, running).cancel_requested_at is not None
    assert run_of(db, ready).status is Status.CANCELLED


def test_cancelling_what_has_finished_fails_and_changes_nothing(url: str, db: Database) -> None:
    run_id = failed(db)
    said = byrote("runs", "cancel", run_id, url=url)

    assert said.code == 1
    assert said.out == f"{run_id}  FAILED  unchanged: it had finished already\n"


def test_retry_brings_the_dead_back(url: str, db: Database) -> None:
    run_id = failed(db)
    said = byrote("runs", "retry", run_id, url=url)

    assert (said.code, said.out) == (0, f"{run_id}  READY  ready again\n")
    assert run_of(db, run_id).charged == 0


def test_of_several_runs_those_that_can_be_retried_are(url: str, db: Database) -> None:
    dead, [ready] = failed(db), enqueue(db)
    said = byrote("runs", "retry", ready, NEVER, dead, "--json", url=url)

    assert said.code == 4
    assert {run["id"]: run["done"] for run in said.objects} == {ready: False, dead: True}


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_locked_runs_are_reported_and_hold_up_no_other(
    url: str, db: Database, address: DatabaseAddress, verb: str
) -> None:
    stuck, other, free = enqueue(db, 3, run_after="1h")
    one = locked(address, "byrote_task_runs", "result_id", stuck)
    two = locked(address, "byrote_task_runs", "result_id", other)
    with one, two:
        said = byrote("runs", verb, stuck, other, free, url=url)
        told = byrote("runs", verb, stuck, free, "--json", url=url)

    assert said.code == told.code == 1
    first, _, third, last = said.out.splitlines()
    assert first == f"{stuck}  WAITING  unchanged: locked by another transaction"
    assert third.startswith(free)
    assert "unchanged" not in third
    assert last == "2 runs are locked by another transaction; try again."
    assert [row["locked"] for row in told.objects] == [True, False]
    assert byrote("runs", verb, stuck, other, url=url).code == 0
