# SPDX-License-Identifier: MIT
"""`byrote replay --verify`: in hands, on a separate queue, with exit codes for CI."""

import signal
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from byrote import App
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import Process, byrote
from tests.cli.test_terminal import on_a_terminal
from tests.replay.conftest import APP, CHANGED, Execute
from tests.support import Db, count, row_of, run_of, until
from tests.worker.harness import ROOT, Marks, StartWorker

pytestmark = pytest.mark.timeout(120)
NEVER = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"


def test_the_same_code_prints_same_and_exits_with_0(url: str, db: Db, execute: Execute) -> None:
    [run] = execute(("price", [99]))
    before = row_of(db, run.id)
    said = byrote("replay", run.id, "--verify", "--app", APP, url=url)
    [shadow] = fetch(db, queries.replays(run.id))

    assert (said.code, said.out.split()[0]) == (0, "same"), said.err
    assert shadow.id in said.out
    assert "computing" not in said.out + said.err
    assert row_of(db, run.id) == before
    assert count(db, "byrote_workers") == 0


def test_changed_code_prints_differs_with_both_diffs_and_exits_with_3(
    url: str, execute: Execute
) -> None:
    [run] = execute(("price", [99]))
    said = byrote("replay", run.spec_hash, "--verify", "--app", CHANGED, url=url)

    assert (said.code, said.out.split()[0]) == (3, "differs"), said.err
    assert "~ /tax  18 -> 19" in said.out
    assert "~ /code/function" in said.out


def test_a_run_that_cannot_be_replayed_exits_with_1_and_the_reason(
    url: str, execute: Execute
) -> None:
    [run] = execute(("retired", [1]))
    said = byrote("replay", run.id[:18], "--verify", "--app", CHANGED, url=url)

    assert said.code == 1
    assert said.out.startswith("not replayable")
    assert "The app has no task retired" in said.out


def test_a_gate_over_many_runs_prints_json_of_each_and_of_all(
    url: str, execute: Execute, tmp_path: Path
) -> None:
    execute(*(("price", [net]) for net in (96, 97, 98, 99)))
    xml = tmp_path / "replay.xml"
    words = ("replay", "--task", "price", "--last", "3", "--verify", "--jobs", "2", "--json")
    said = byrote(*words, "--app", CHANGED, "--junit", str(xml), url=url)
    *verdicts, summary = said.objects
    suite = ET.parse(xml).getroot()  # noqa: S314 -- our own.

    assert said.code == 3
    assert sorted(verdict["verdict"] for verdict in verdicts) == ["differs", "differs", "same"]
    assert {key: summary[key] for key in ("task", "replayed", "same", "differs")} == {
        "task": "price",
        "replayed": 3,
        "same": 1,
        "differs": 2,
    }
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "2", "0")
    assert {case.get("classname") for case in suite} == {"price@1"}
    assert sum("/tax" in (failure.text or "") for failure in suite.iter("failure")) == 2


def test_a_gate_chooses_by_version_and_label_and_may_hide_values(
    url: str, execute: Execute, here: App, tmp_path: Path
) -> None:
    [free] = execute(("price", [99]), labels={"plan": "free", "x": "y"})
    execute(("price", [98]))
    execute(("versioned", [1]), version=2)
    xml = tmp_path / "replay.xml"
    gate = ("replay", "--verify", "--app", CHANGED, "--json", "--task")
    label = ("--label", "plan=free", "--label", "x=y")
    plain = byrote(*gate, "price", *label, url=url)
    hidden = byrote(*gate, "price", *label, "--hide-values", "--junit", str(xml), url=url)

    assert [verdict["original"] for verdict in plain.objects[:-1]] == [free.id]
    [change] = hidden.objects[0]["result"]["changes"]
    assert (change["path"], change["old"], change["new"]) == ("/tax", "(hidden)", "(hidden)")
    assert '"(hidden)" -&gt; "(hidden)"' in xml.read_text()
    assert byrote(*gate, "versioned", "--version", "1", url=url).code == 4
    assert byrote(*gate, "versioned", "--version", "2", url=url).code == 1
    [found] = here.replay(task="price", labels={"x": "y"}, version=1, hide_values=True)
    assert found.original == free.id


def test_a_gate_may_pass_over_what_cannot_be_replayed_if_something_was_compared(
    url: str, db: Db, execute: Execute
) -> None:
    first, second = execute(("price", [99]), ("price", [98]))
    gate = ("replay", "--verify", "--app", APP, "--task", "price", "--allow-not-replayable")
    spoil = "update byrote_task_runs set spec_hash = sha256('x') where result_id = %s"
    db.execute(spoil, (first.id,))
    codes = [byrote(*gate, url=url).code, byrote(*gate[:-1], url=url).code]
    db.execute(spoil, (second.id,))

    assert [*codes, byrote(*gate, url=url).code] == [0, 1, 1]


def test_a_gate_prints_its_result_in_a_line(url: str, execute: Execute) -> None:
    execute(*(("price", [net]) for net in (98, 99)), ("hopeless", [1]))
    good = byrote("replay", "--task", "price", "--since", "1h", "--verify", "--app", APP, url=url)
    words = ("replay", "--task", "hopeless", "--failed", "--verify", "--app", CHANGED)
    bad = byrote(*words, url=url)
    spared = byrote(*words, "--ignore", "$error.message", url=url)

    assert (good.code, good.out.count("\n")) == (0, 1)
    assert good.out.startswith("2 runs of price replayed in ")
    assert good.out.endswith(": 2 same.\n")
    assert bad.code == 3
    assert "There is no customer number 1." in bad.out
    assert spared.code == 0


def test_on_a_terminal_a_bar_shows_how_far_it_has_come(url: str, execute: Execute) -> None:
    execute(*(("price", [net]) for net in (97, 98, 99)))
    words = ("replay", "--task", "price", "--verify", "--app", CHANGED)
    written = on_a_terminal(*words, url=url, PYTHONPATH=str(ROOT))

    assert f"[{'-' * 36}]  0/3" in written
    assert f"[{'#' * 36}]  3/3  1 same, 2 differs" in written
    assert written.rstrip().endswith(": 1 same, 2 differs.")


def test_a_gate_without_anything_to_replay_does_not_pass(url: str) -> None:
    said = byrote("replay", "--task", "price", "--verify", "--app", APP, url=url)

    assert said.code == 4
    assert "No finished run of price" in said.err


def test_a_task_that_takes_its_process_down_is_compared_too(url: str, execute: Execute) -> None:
    [run] = execute(("crash", [7]), executor="hand")
    said = byrote("replay", run.id, "--verify", "--app", APP, url=url)

    assert run.faults[-1]["kind"] == "crashed"
    assert (said.code, said.out.split()[0]) == (0, "same"), said.out


def test_in_hands_steps_are_recited_and_live_ones_executed(
    url: str, db: Db, execute: Execute, marks: Marks
) -> None:
    [run] = execute(("fewer_steps", [marks.path]))
    words = ("replay", run.id, "--verify", "--app", APP)
    before = list(marks.words)

    assert byrote(*words, url=url).code == 0
    assert marks.words == before
    assert byrote(*words, "--live-steps", url=url).code == 0
    assert marks.words == before * 2
    refused = byrote("replay", run.id, "--verify", "--app", CHANGED, url=url)
    assert (refused.code, "is the end of the task now" in refused.out) == (1, True)
    assert count(db, "byrote_steps") == 4


def test_unreached_steps_are_printed_as_text_and_json(
    url: str, execute: Execute, marks: Marks, tmp_path: Path
) -> None:
    [run] = execute(("refuses", [marks.path]))
    xml = tmp_path / "replay.xml"
    words = ("replay", run.id, "--verify", "--app", CHANGED, "--junit", str(xml))
    said = byrote(*words, url=url)
    [failure] = ET.parse(xml).getroot().iter("failure")  # noqa: S314 -- our own.

    assert (said.code, said.out.split()[0]) == (3, "differs"), said.err
    assert "steps       1 different\n  - /2  \"step 'two'\"" in said.out
    assert str(failure.get("message")).startswith("steps 1 different; ")
    assert "- /2" in str(failure.text)


def test_no_other_worker_gets_to_see_a_shadow(
    url: str, db: Db, execute: Execute, start_worker: StartWorker
) -> None:
    """The worker beside it has the old code, whose verdict would be `same`."""
    [run] = execute(("price", [99]))
    other = start_worker(APP)
    said = byrote("replay", run.id, "--verify", "--app", CHANGED, "--json", url=url)

    assert said.object["verdict"] == "differs"
    assert run_of(db, said.object["replay"]).worker_ids != [other.name]


def test_runs_are_distinguished_by_their_steps_and_a_replay_has_the_recorded_ones(
    url: str, db: Db, execute: Execute, marks: Marks
) -> None:
    one, two = execute(("more_steps", [marks.path]), ("fewer_steps", [marks.path]))
    said = byrote("runs", "diff", one.id, two.id, url=url)
    byrote("replay", two.id, "--verify", "--app", APP, url=url)
    [shadow] = fetch(db, queries.replays(two.id))
    alike = byrote("runs", "diff", two.id, shadow.id, "--json", url=url).object

    assert '  + /2  {"kind":"step","name":"two","result":2}' in said.out.splitlines()
    assert alike["steps"]["changes"] == alike["result"]["changes"] == []


def test_two_gates_at_once_do_not_get_in_each_others_way(
    url: str, db: Db, execute: Execute, tmp_path: Path
) -> None:
    """Two processes, two codes, the same runs."""
    runs = execute(*(("price", [net]) for net in (98, 99)))
    words = ("replay", "--task", "price", "--verify", "--jobs", "2", "--json", "--app")
    more = {"url": url, "folder": tmp_path, "PYTHONPATH": str(ROOT)}
    with Process(*words, APP, **more) as old, Process(*words, CHANGED, **more) as new:
        answers = old.ended(), new.ended()

    assert [answer.code for answer in answers] == [0, 3]
    for run in runs:
        assert len(fetch(db, queries.replays(run.id))) == 2


def test_broken_off_it_leaves_nothing_under_way(
    url: str, db: Db, execute: Execute, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    [run] = execute(("price", [99]))
    words = ("replay", run.id, "--verify", "--app", "slow:app")
    with Process(*words, url=url, folder=tmp_path, PYTHONPATH=str(ROOT)) as process:
        running = "select 1 from byrote_task_runs where shadow and status = 'RUNNING'"
        until(lambda: db.execute(running).fetchone(), within=60)
        process.signal(signal.SIGINT)
        assert process.ended().code == 130
    [shadow] = fetch(db, queries.replays(run.id))

    assert shadow.status == "CANCELLED"
    assert count(db, "byrote_workers") == 0


def test_a_verdict_survives_that_every_connection_breaks(
    url: str, db: Db, execute: Execute, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    (tmp_path / "held.py").write_text(HELD.format(gate=str(gate)))
    [run] = execute(("price", [99]))
    words = ("replay", run.id, "--verify", "--json", "--app", "held:app")
    with Process(*words, url=url, folder=tmp_path) as process:
        running = "select 1 from byrote_task_runs where shadow and status = 'RUNNING'"
        until(lambda: db.execute(running).fetchone(), within=60)
        db.execute(
            """select pg_terminate_backend(pid) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid()"""
        )
        gate.touch()
        said = process.ended()

    assert said.code == 0, said.err
    assert said.object["verdict"] == "same"


HELD = """
import asyncio
from pathlib import Path
from byrote import App
app = App()

@app.task
async def price(net: int):
    while not Path("{gate}").exists():
        await asyncio.sleep(0.01)
    return {{"net": net, "tax": net * 19 // 100}}
"""

SLOW = """
import asyncio
from byrote import App
app = App()

@app.task
async def price(net: int):
    await asyncio.sleep(60)
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((NEVER, "--verify"), "--app MODULE:APP"),
        ((NEVER, "--verify", "--app", "nothing.there:app"), "No module"),
        ((NEVER, "--jobs", "2"), "--jobs goes with --verify"),
        (("--task", "price"), "--task goes with --verify"),
        ((NEVER, "--verify", "--failed"), "--failed chooses among the runs of a --task"),
        ((NEVER, "--verify", "--wait"), "leave --wait out"),
        ((NEVER, "--task", "price", "--verify"), "Give one run"),
        ((NEVER, "--verify", "--app", APP, "--ignore", "at"), "is not a path to ignore"),
        ((NEVER, "--verify", "--app", APP, "--junit", "no/such/folder.xml"), "No such file"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(
    url: str, execute: Execute, words: tuple[str, ...], said: str
) -> None:
    if "nothing.there:app" in words:
        [run] = execute(("price", [99]))
        words = (run.id, *words[1:])
    answer = byrote("replay", *words, url=url)

    assert answer.code == 2
    assert said in answer.err


def test_an_unknown_run_is_not_found_and_a_pruned_one_is_reported(
    url: str, db: Db, execute: Execute
) -> None:
    [run] = execute(("price", [99]))
    db.execute("delete from byrote_task_runs")
    gone = byrote("replay", run.id, "--verify", "--app", APP, url=url)

    assert byrote("replay", NEVER, "--verify", "--app", APP, url=url).code == 4
    assert gone.code == 1
    assert "pruned" in gone.out


def test_the_app_may_be_set_once_for_all(url: str, execute: Execute) -> None:
    [run] = execute(("price", [99]))

    assert byrote("replay", run.id, "--verify", url=url, BYROTE_APP=APP).code == 0


def test_shadows_are_listed_only_when_asked_and_shown_with_their_original(
    url: str, db: Db, execute: Execute
) -> None:
    [run] = execute(("price", [99]))
    byrote("replay", run.id, "--verify", "--app", APP, url=url)
    [shadow] = fetch(db, queries.replays(run.id))

    assert [row["id"] for row in byrote("runs", "list", "--json", url=url).objects] == [run.id]
    assert [row["queue"] for row in byrote("queues", "--json", url=url).objects] == ["default"]
    listed = byrote("runs", "list", "--shadow", "--json", url=url).objects
    assert [(row["id"], row["shadow"]) for row in listed] == [(shadow.id, True), (run.id, False)]
    assert f"{shadow.id} (shadow, SUCCESSFUL)" in byrote("runs", "show", run.id, url=url).out
    shown = byrote("runs", "show", shadow.id, "--json", url=url).object
    assert (shown["replay_of"], shown["shadow"]) == (run.id, True)
    assert "computing 99" in byrote("runs", "logs", shadow.id, url=url).out
    again = byrote("replay", shadow.id, url=url)
    assert (again.code, run.id in again.err) == (2, True)
