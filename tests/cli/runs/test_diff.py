# SPDX-License-Identifier: MIT
from typing import Any

import psycopg

from byrote.assembly.identity import new_id
from byrote.core.replay.provenance import provenance_of
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import byrote
from tests.support import claim, success, verdict

Database = psycopg.Connection[Any]
NEVER = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"
DOC: dict[str, Any] = {
    "code": {"tasks": {"t@1": {"function": "aa", "tree": "shop"}}, "trees": {"shop": "11"}},
    "packages": {"numpy": "1.0"},
}


def ran(db: Database, n: int, result: str, doc: dict[str, Any] | None, **delivery: Any) -> str:
    """A run that ended so, in this environment."""
    run_id = new_id()
    spec = describe("t", 1, [], {"n": n}, delivery=Delivery(**delivery))
    fetch(db, queries.enqueue([(run_id, spec)]))
    more = {}
    if doc is not None:
        found = provenance_of(doc)
        [number] = fetch(db, queries.register_provenance(digest=found.digest, doc=found.text))
        more = {"more": {"provenance": number}}
    fetch(db, queries.finish([success(claim(db)[0], result) | more]))
    return run_id


def test_differences_are_listed_part_by_part(url: str, db: Database) -> None:
    first = ran(db, 1, '{"total":1,"rows":[1,2,3]}', DOC)
    newer = DOC | {"packages": {"numpy": "2.0", "extra": "1"}}
    second = ran(db, 2, '{"total":2,"rows":[1,3]}', newer, priority=7)
    said = byrote("runs", "diff", first, second, url=url)

    assert said.code == 0
    lines = said.out.splitlines()
    assert "spec        1 different" in lines
    assert "  ~ /kwargs/n  1 -> 2" in lines
    assert "  ~ /priority  0 -> 7" in lines
    assert '  + /packages/extra  "1"' in lines
    assert '  ~ /packages/numpy  "1.0" -> "2.0"' in lines
    assert "  - /result/rows/1  2" in lines
    assert "  ~ /result/total  1 -> 2" in lines


def test_equal_runs_are_reported_as_equal(url: str, db: Database) -> None:
    ids = [ran(db, 1, "[1.0]", DOC), ran(db, 1, "[1]", DOC)]
    said = byrote("runs", "diff", *ids, "--json", url=url)

    assert said.code == 0
    told = said.object
    for part in ("spec", "delivery", "provenance", "result"):
        assert told[part] == {"changes": [], "cut": False}, part
    assert {change["path"] for change in told["execution"]["changes"]} <= {
        "/now", "/waited_s", "/took_s",
    }  # fmt: skip
    assert byrote("runs", "diff", *ids, url=url).out.startswith("spec        same\n")


def test_runs_of_different_tasks_are_compared_each_by_its_own_code(url: str, db: Database) -> None:
    tasks = {"t@1": {"function": "aa", "tree": "shop"}, "t@2": {"function": "bb", "tree": "shop"}}
    doc = DOC | {"code": {"tasks": tasks, "trees": {"shop": "11"}}}
    ids = [ran(db, 1, "1", doc), ran(db, 1, "1", doc)]
    text = "update byrote_task_runs set task_version = 2 where result_id = %s"
    db.execute(text, (ids[1],))
    said = byrote("runs", "diff", *ids, url=url)

    assert '  ~ /code/function  "aa" -> "bb"' in said.out.splitlines()


def test_a_failure_differs_by_its_error(url: str, db: Database) -> None:
    first = ran(db, 1, "1", DOC)
    second = new_id()
    spec = describe("t", 1, [], {"n": 1}, delivery=Delivery())
    fetch(db, queries.enqueue([(second, spec)]))
    fetch(db, queries.finish([verdict(claim(db)[0], "F")]))
    said = byrote("runs", "diff", first, second, url=url)

    assert "provenance  unknown" in said.out
    assert '~ /status  "SUCCESSFUL" -> "FAILED"' in said.out
    assert '+ /error  {"kind":"raised","type":"ValueError","message":"no"}' in said.out


def test_long_values_and_control_characters_do_not_reach_the_terminal(
    url: str, db: Database
) -> None:
    first = ran(db, 1, '"\\u009b2J"', None)
    second = ran(db, 1, f'"{"x" * 5000}"', None)
    out = byrote("runs", "diff", first, second, url=url).out

    assert "\x9b" not in out
    assert max(map(len, out.splitlines())) < 300


def test_a_run_that_is_not_there_is_not_found(url: str, db: Database) -> None:
    first = ran(db, 1, "1", None)

    assert byrote("runs", "diff", first, NEVER, url=url).code == 4
    assert byrote("runs", "diff", NEVER, first, "--json", url=url).code == 4
