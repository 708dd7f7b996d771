# SPDX-License-Identifier: MIT
"""`byrote demo` shows every fate of a run, keeps its word, and leaves nothing behind."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from byrote.demo.compiled import NEVER, compiling

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("demo")]

LIMIT_S = 60
FATES = {
    "quick": "successful, 1 try",
    "retried": "successful, 3 tries",
    "invoice": "successful, 1 try",
    "snoozed": "successful, 3 claims, 1 try",
    "poison": "failed, 3 of 3 tries: crashed",
    "killed hand": "successful, 2 tries, the first hit by SIGKILL",
    "timeout": "failed, 1 of 1 try: timeout",
    "scheduled": "successful, started when due",
    "high priority": "successful, started before every low one",
    "cancelled waiting": "cancelled, never started",
    "cancelled running": "cancelled, while running",
    "fatal": "failed, 1 of 5 tries: raised",
}


class Shown(NamedTuple):
    """A demo that has ended, and the temporary folder it had to itself."""

    told: dict[str, Any]
    folder: Path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "byrote.cli.main", "demo", *words]


def environ(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder)}


def processes_naming(text: str) -> list[str]:
    """Command lines and environments of living processes that hold this text."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in words:
                found.append(words.decode(errors="replace"))
    return found


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A temporary directory that the server's user can enter, short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="demo-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def shown(folder: Path) -> Shown:
    """A demo that keeps its data."""
    done = subprocess.run(
        command("--json", "--keep"),
        env=environ(folder),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Shown(json.loads(done.stdout), folder)


@pytest.mark.parametrize("kind", FATES)
def test_every_run_of_a_kind_meets_its_fate(shown: Shown, kind: str) -> None:
    [chapter] = [c for c in shown.told["chapters"] if c["kind"] == kind]
    assert chapter["seen"] == {FATES[kind]: chapter["sent"]}


def test_the_demo_sends_a_few_hundred_runs_and_is_content(shown: Shown) -> None:
    assert shown.told["ok"]
    assert 200 <= sum(chapter["sent"] for chapter in shown.told["chapters"]) <= 500


def test_a_replay_returns_the_same_result_hash(shown: Shown) -> None:
    replay = shown.told["replay"]
    assert replay["replay_result_hash"] == replay["original_result_hash"] is not None
    assert replay["replay"] != replay["original"]


def test_it_verifies_a_run_with_the_code_that_ran_it_and_with_changed_code(shown: Shown) -> None:
    same, differs = shown.told["verified"]
    paths = [change["path"] for change in differs["verdict"]["result"]["changes"]]
    functions = [c["path"] for c in differs["verdict"]["provenance"]["changes"]]

    assert (same["verdict"]["verdict"], same["exit_code"], same["code"]) == ("same", 0, [])
    assert (differs["verdict"]["verdict"], differs["exit_code"]) == ("differs", 3)
    assert same["verdict"]["original"] == differs["verdict"]["original"]
    assert paths == ["/tax", "/total"]
    assert "/code/function" in functions
    assert [line[0] for line in differs["code"]] == ["-", "+"]


def test_the_demo_leaves_no_process_behind(shown: Shown) -> None:
    assert processes_naming(str(shown.folder)) == []


def test_the_commands_it_proposes_work_on_what_it_kept(shown: Shown) -> None:
    for step in shown.told["next"]:
        words = shlex.split(
            step["command"].replace(" byrote ", f" {sys.executable} -m byrote.cli.main ")
        )
        done = subprocess.run(
            ["env", *words],
            env=environ(shown.folder),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, (step, done.stderr)
    assert not Path(shown.told["kept"]).exists()


def test_interrupted_in_the_middle_it_cleans_up(folder: Path) -> None:
    place = folder / "interrupted"
    place.mkdir(mode=0o755)
    with subprocess.Popen(command(), env=environ(place), stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        next(line for line in demo.stdout if line.startswith("Sending"))
        demo.send_signal(signal.SIGINT)
        demo.stdout.read()
        assert demo.wait(LIMIT_S) == 130
    assert processes_naming(str(place)) == []
    assert list(place.glob("byrote-*/pg")) == []


def test_processes_share_compiled_code_where_python_must_not_store_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NEVER, "1")
    with compiling(tmp_path) as compiler:
        assert compiler.wait(LIMIT_S) == 0
        used = "import byrote.assembly.hand_main as hand; print(hand.__cached__)"
        found = subprocess.run([sys.executable, "-c", used], capture_output=True, check=True)

    assert Path(found.stdout.decode().strip()).is_relative_to(tmp_path)
    assert Path(found.stdout.decode().strip()).exists()
    assert os.environ[NEVER] == "1"


def test_in_a_database_of_yours_it_leaves_other_runs_alone(
    url: str, db: psycopg.Connection[Any], app: Any
) -> None:
    @app.task(name="demo.quick")
    async def quick(n: int) -> int:
        return n

    mine = quick.enqueue(1)
    done = subprocess.run(
        command("--json", "--url", url),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert json.loads(done.stdout)["ok"], done.stdout
    assert mine.refresh().status == "READY"
    [left] = db.execute("select count(*) from byrote_workers").fetchall()
    assert left == (0,)
