# SPDX-License-Identifier: MIT
"""The torture itself, in the short form: a minute, ten kinds; and with its fence torn out."""

import os
from pathlib import Path

import pytest

from byrote.lab.torture import unserved
from byrote.lab.torture.plan import SHORT
from byrote.lab.torture.run import Wish, torture
from tests.cli.console import Process
from tests.support import Db

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.timeout(400)


def test_a_minute_of_torture_breaks_no_promise() -> None:
    said: list[str] = []
    wish = Wish(seconds=75, runs=700, faults=10, seed=1, kinds=SHORT, durable=False, workers=2)
    ended = torture(wish, show=said.append)

    assert ended.violations == 0, (ended.judged.violations, ended.verified.findings)
    assert {fault.kind for fault in ended.faults if fault.happened} == set(SHORT), "\n".join(said)
    assert ended.judged.runs >= 600
    assert ended.judged.ticks >= 50
    assert ended.judged.unserved == unserved.RUNS
    assert ended.judged.by_status["SUCCESSFUL"] >= 600
    assert ended.zombies_forced >= 20
    assert ended.zombies_accepted == 0
    assert sum(figure.times > 0 for figure in ended.recovery) >= 2, ended.recovery


GIVEN = (
    "kill_worker", "kill_producer", "terminate_backends", "row_locks", "cut", "lost_answers",
)  # fmt: skip


def test_a_given_server_is_tortured_in_a_separate_database(server_url: str, db: Db) -> None:
    said: list[str] = []
    before = databases(db)
    wish = Wish(seconds=14, runs=150, faults=6, seed=4, kinds=GIVEN, url=server_url, workers=2)
    ended = torture(wish, show=said.append)

    assert ended.violations == 0, (ended.judged.violations, ended.verified.findings)
    happened = {fault.kind for fault in ended.faults if fault.happened}
    assert happened <= set(GIVEN)
    assert len(happened) >= 3, "\n".join(said)
    assert ended.judged.runs >= 150
    assert databases(db) == before


def databases(db: Db) -> list[str]:
    """Those that a torture may have made; other processes of the suite make others."""
    text = "select datname from pg_database where datname like 'byrote_bench_' || %s || '%%'"
    return [name for (name,) in db.execute(text, (os.getpid(),))]


def test_without_faults_no_run_of_ten_thousand_is_executed_twice() -> None:
    wish = Wish(
        seconds=11, runs=10_000, faults=0, seed=2, kinds=(), durable=False, workers=2, calm=True
    )
    ended = torture(wish, show=lambda _line: None)

    assert ended.judged.runs - ended.judged.ticks - ended.judged.unserved == 10_000
    assert ended.judged.ticks >= 8
    assert ended.judged.again == 0
    assert ended.violations == 0, (ended.judged.violations, ended.verified.findings)


def test_without_the_fence_the_same_command_fails_loudly(tmp_path: Path) -> None:
    """The switch is a folder on PYTHONPATH; it is not part of the package."""
    path = os.pathsep.join([str(ROOT / "tests" / "mutants" / "switch"), str(ROOT)])
    words = ("torture", "--minutes", "0.1", "--runs", "60", "--faults", "0", "--json")
    with Process(*words, folder=tmp_path, PYTHONPATH=path) as unfenced:
        ended = unfenced.ended(300.0)

    assert ended.code == 3
    told = ended.object
    assert told["zombies_accepted"] > 0
    assert told["verified"]["counts"]["fence"] > 0
    assert {violation["kind"] for violation in told["judged"]["violations"]} == {"stranger"}


def test_where_rows_are_taken_for_a_commit_the_same_command_fails_loudly(tmp_path: Path) -> None:
    """`byrote verify` alone cannot see it: what was never committed is not in the database."""
    path = os.pathsep.join([str(ROOT / "tests" / "mutants" / "hasty"), str(ROOT)])
    words = ("torture", "--minutes", "0.4", "--runs", "400", "--faults", "3", "--json")
    kinds = ("--kinds", "failed_commits")
    with Process(*words, *kinds, folder=tmp_path, PYTHONPATH=path) as hasty:
        ended = hasty.ended(300.0)

    assert ended.code == 3
    found = {violation["kind"] for violation in ended.object["judged"]["violations"]}
    assert found & {"lost", "unwritten", "twice"}
