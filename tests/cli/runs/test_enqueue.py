# SPDX-License-Identifier: MIT
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from byrote.core.json.codec import digest_of
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import byrote
from tests.support import claim, count, run_of, success, until

Database = psycopg.Connection[Any]


def test_it_prints_the_id_of_a_run_that_is_ready(url: str, db: Database) -> None:
    said = byrote("enqueue", "shop.send", '{"to": "a"}', url=url)
    run = run_of(db, said.out.strip())

    assert said.code == 0
    assert (run.status, run.task, run.version, run.kwargs) == (
        Status.READY,
        "shop.send",
        1,
        {"to": "a"},
    )


def test_the_json_is_kept_byte_for_byte(url: str, db: Database) -> None:
    given = '{"b": 1.0,  "a": -0.0, "big": 1180591620717411303424, "s": "\\u0000é"}'
    said = byrote("enqueue", "t", given, "--args", "[ 5e-324 ]", url=url)
    run = run_of(db, said.out.strip())

    assert run.spec_json == f'{{"task":"t","version":1,"args":[ 5e-324 ],"kwargs":{given}}}'
    assert run.spec_hash == digest_of(run.spec_json).hex()


def test_the_hash_is_the_one_an_app_would_give(url: str, db: Database) -> None:
    said = byrote("enqueue", "t", '{"b": 1.0, "a": [true]}', url=url)
    canonical = b'{"args":[],"kwargs":{"a":[true],"b":1},"task":"t","version":1}'

    assert run_of(db, said.out.strip()).spec_hash == hashlib.sha256(canonical).hexdigest()


def test_every_option_of_delivery_arrives(url: str, db: Database) -> None:
    words = "--queue mail --priority 7 --after 10m --timeout 90s --attempts 4 --version 3"
    labels = ("--label", "order=4=2", "--label", "who=me")
    run = run_of(db, byrote("enqueue", "t", *words.split(), *labels, url=url).out.strip())

    assert (run.queue, run.priority, run.version, run.max_attempts) == ("mail", 7, 3, 4)
    assert (run.status, run.wait_reason) == (Status.WAITING, "due")
    assert run.timeout is not None
    assert run.timeout.total_seconds() == 90
    assert run.labels == {"order": "4=2", "who": "me"}


def test_it_can_be_sent_for_a_moment(url: str, db: Database) -> None:
    said = byrote("enqueue", "t", "--after", "2099-01-31T09:00+01:00", "--json", url=url)

    assert run_of(db, said.object["id"]).run_after.isoformat().startswith("2099-01-31T08:00")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["t", "[1]"], "an object such as"),
        (["t", "{}, 1"], "Malformed JSON"),
        (["t", '{"a": NaN}'], "NaN"),
        (["t", '{"a": 1, "a": 2}'], "twice"),
        (["t", "--args", "{}"], "an array such as"),
        (["a b"], "is not a task name"),
        (["t", "--queue", "a b"], "is not a queue name"),
        (["t", "--after", "2099-01-31T09:00"], "no time zone"),
        (["t", "--after", "soon"], "neither a delay"),
        (["t", "--timeout", "1y"], "Write a duration"),
        (["t", "--priority", "101"], "-100<=x<=100"),
        (["t", "--label", "x"], "write key=value"),
        (["t", "{}", "--many", "-"], "--many takes its JSON"),
        (["--wait", "{}", "t"], "put --wait last"),
    ],
)
def test_bad_input_is_refused_with_advice_and_nothing_is_accepted(
    url: str, db: Database, words: list[str], advice: str
) -> None:
    said = byrote("enqueue", *words, url=url)

    assert (said.code, said.out) == (2, "")
    assert advice in said.err
    assert count(db, "byrote_task_runs") == 0


def test_a_payload_over_the_limit_is_refused(url: str) -> None:
    said = byrote("enqueue", "t", '{"a": "123456"}', url=url, BYROTE_PAYLOAD_MAX="20")

    assert said.code == 2
    assert "the limit is 20" in said.err


def test_a_large_payload_is_accepted_with_an_advice(url: str, db: Database) -> None:
    said = byrote("enqueue", "t", f'{{"a": "{"x" * 300_000}"}}', url=url)

    assert run_of(db, said.out.strip()).status is Status.READY
    assert "pass a reference" in said.err
    assert "xxx" not in said.err


def test_many_lines_are_accepted_in_order(url: str, db: Database) -> None:
    lines = "".join(f'{{"n": {n}}}\r\n\n' for n in range(2_500))
    said = byrote("enqueue", "t", "--many", "-", "--queue", "q", "--json", url=url, stdin=lines)
    specs = db.execute("select spec_json from byrote_task_runs order by result_id").fetchall()

    assert (said.object["accepted"], said.object["queue"]) == (2_500, "q")
    assert [json.loads(spec)["kwargs"]["n"] for (spec,) in specs] == list(range(2_500))


def test_of_many_lines_with_a_bad_one_none_is_accepted(url: str, db: Database) -> None:
    lines = "".join(f'{{"n": {n}}}\n' for n in range(1_500)) + "{oops}\n"
    said = byrote("enqueue", "t", "--many", "-", url=url, stdin=lines)

    assert said.code == 2
    assert "line 1501, $: Malformed JSON" in said.err
    assert count(db, "byrote_task_runs") == 0


def test_waiting_that_times_out_fails_and_prints_the_status(url: str) -> None:
    said = byrote("enqueue", "t", "--wait=0.05", "--json", url=url)

    assert said.code == 1
    assert (said.object["status"], said.object["result"]) == ("READY", None)
    assert said.failure["error"] == "result_timeout"


def test_a_result_that_is_there_is_printed_as_it_is_stored(url: str, db: Database) -> None:
    """A replay waits the same way; here the worker is this test."""

    def settle() -> None:

        leases = []
        until(lambda: leases.extend(claim(db)) or leases)
        fetch(db, queries.finish([success(leases[0], '{"z":1.0,"a":2}')]))

    with ThreadPoolExecutor(1) as other:
        settled = other.submit(settle)
        said = byrote("enqueue", "t", "--wait=20", url=url)
        settled.result()

    assert said.code == 0
    assert said.out.splitlines()[1:] == ['{"z":1.0,"a":2}']
