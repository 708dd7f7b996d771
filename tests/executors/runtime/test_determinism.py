# SPDX-License-Identifier: MIT
"""A run has the same random numbers wherever it is executed; what executed it is recorded."""

import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from byrote import Retry
from byrote.assembly.identity import new_id
from byrote.core.errors import BadOption
from byrote.core.json.codec import unpack
from byrote.core.json.seed import run_digest, seed_of, uuid_bits
from byrote.core.run import Leased
from byrote.core.state import Status
from byrote.executors.inline import Inline
from byrote.sdk import Handlers
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import byrote
from tests.executors.runtime import deciding
from tests.support import row_of
from tests.worker.bench import Bench, make_hands
from tests.worker.harness import Database, StartWorker, await_end, send, send_one, spec

APP = "tests.executors.runtime.deciding:app"
TWICE = Retry(attempts=2, backoff="fixed", delay_first=timedelta(0))
PLACES = (
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "random", "TZ": "America/New_York", "LC_ALL": "C.UTF-8"},
)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(make_hands(APP, **getattr(request, "param", {})))
    yield made
    made.close()


def repeat(bench: Bench, run: Leased) -> Any:
    """The result of the same attempt, executed once more."""
    bench.reports.pop(run.id, None)
    again = msgspec.structs.replace(run, settling=False, provenance=None)
    return unpack(bench.outcomes_of([again])[run.id].text)


def results(db: Database, runs: list[str]) -> list[tuple[str, str]]:
    return [
        (row["return_json"], row["result_hash"].hex()) for row in (row_of(db, run) for run in runs)
    ]


@pytest.mark.needs("commands")
def test_two_workers_in_different_places_give_the_same_bytes(
    db: Database, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hash seed, time zone and locale of the workers differ; a replay has the original's now."""
    originals = send(db, spec("decide", 1), spec("draw", 20), spec("command_decide", 1))
    found = []
    for place in PLACES:
        for name, value in place.items():
            monkeypatch.setenv(name, value)
        worker = start_worker(APP, hands=1)
        await_end(db, *originals)
        found.append(results(db, originals))
        assert worker.stop() == 0
        originals = [fetch(db, queries.replay(original=run, id=new_id()))[0] for run in originals]

    assert found[0] == found[1]
    told = unpack(found[0][0][0])
    assert (told["zone"], told["name"]) == (0, "UTC")
    assert told["locale"] == "C.UTF-8"


def test_every_attempt_of_a_run_is_dealt_the_same(db: Database, start_worker: StartWorker) -> None:
    start_worker(APP, hands=1)
    [run] = await_end(db, send_one(db, spec("second_try", retry=TWICE)))

    assert run.status is Status.SUCCESSFUL
    assert run.attempts == 2
    assert run.faults[0]["message"] == repr(run.result)
    assert run.result[2] == run.as_of.isoformat() == run.enqueued_at.isoformat()


@pytest.mark.parametrize(
    ("task", "by_spec"),
    [
        ("decide", False),
        ("decide_by_spec", True),
    ],
)
def test_a_context_follows_from_the_run_or_from_the_spec(
    bench: Bench, task: str, by_spec: bool
) -> None:
    run = bench.lease(task, 5)
    run.as_of_us = 1_893_456_000_000_001
    told = unpack(bench.outcomes_of([run])[run.id].text)
    digest = run.spec_hash if by_spec else run_digest(run.id)
    own = random.Random(seed_of(digest))

    assert told["seed"] == seed_of(digest)
    assert told["random"][0] == random.Random(f"random {seed_of(digest)}").random()
    assert told["own"] == [own.random(), own.randrange(10**9)]
    assert told["uuids"] == [str(UUID(int=uuid_bits(digest, number))) for number in (0, 1)]
    assert told["now"] == "2030-01-01T00:00:00.000001+00:00"


@pytest.mark.parametrize("bench", [{"hands": 1}], indirect=True)
def test_tasks_that_draw_in_turns_do_not_disturb_each_other(bench: Bench) -> None:
    runs = [bench.lease("draw", rounds) for rounds in range(20, 41)]
    together = bench.outcomes_of(runs)
    texts = {run.id: together[run.id].text for run in runs}

    assert unpack(texts[runs[10].id]) == repeat(bench, runs[10])
    assert len(set(texts.values())) == len(runs)


def test_runs_with_equal_arguments_draw_different_numbers(bench: Bench) -> None:
    drawn = [unpack(bench.run("decide", 5).text) for _ in range(2)]

    for part in ("random", "own", "uuids", "seed"):
        assert drawn[0][part] != drawn[1][part]


@pytest.mark.needs("commands")
def test_a_replay_of_a_replay_draws_the_numbers_of_the_first_run(
    url: str, db: Database, start_worker: StartWorker
) -> None:
    """In hands and in commands; the label that carries the seed is not shown to the task."""
    runs = send(db, spec("decide", labels={"k": "v"}), spec("command_decide"), spec("draw", 2))
    replays = [fetch(db, queries.replay(original=run, id=new_id()))[0] for run in runs]
    again = [fetch(db, queries.replay(original=run, id=new_id()))[0] for run in replays]
    start_worker(APP, hands=1)
    await_end(db, *runs, *replays, *again)

    assert results(db, runs) == results(db, replays) == results(db, again)
    seeds = {
        byrote("runs", "show", r, "--json", url=url).object["seed"] for r in (runs[0], again[0])
    }
    assert seeds == {unpack(results(db, runs)[0][0])["seed"]}


@pytest.mark.needs("commands")
def test_a_task_seeded_by_its_spec_repeats_its_numbers_also_as_a_command(
    url: str, db: Database, start_worker: StartWorker
) -> None:
    start_worker(APP, hands=1)
    runs = send(db, *(spec(n, 1) for n in ("decide_by_spec", "command_by_spec") for _ in (1, 2)))
    await_end(db, *runs)
    drawn = [unpack(text) for text, _ in results(db, runs)]

    for one, other in (drawn[:2], drawn[2:]):
        assert (one["random"], one["uuids"]) == (other["random"], other["uuids"])
    shown = byrote("runs", "show", runs[2], "--json", url=url).object
    assert shown["seed"] == drawn[2]["seed"] == seed_of(bytes.fromhex(shown["spec_hash"]))


def test_handlers_of_the_sdk_may_be_seeded_from_the_spec() -> None:
    handlers = Handlers()
    handlers.handle("one", seed="spec")(lambda _ctx, payload: payload)
    handlers.task(name="two", seed="spec")(lambda: None)
    handlers.task(name="three")(lambda: None)

    assert [handlers.registry.find(name, 1).seed for name in ("one", "two", "three")] == [
        "spec",
        "spec",
        "run",
    ]
    with pytest.raises(BadOption, match="seed is 'run'"):
        handlers.task(name="four", seed="dice")(lambda: None)  # type: ignore[arg-type]


def test_random_and_ctx_random_are_not_the_same_stream(bench: Bench) -> None:
    told = unpack(bench.run("decide").text)

    assert told["random"][0] != told["own"][0]


def test_a_task_may_opt_out(bench: Bench) -> None:
    assert bench.run("draw_freely", 1).text != bench.run("draw_freely", 1).text


@pytest.mark.parametrize(
    "bench",
    [{"deterministic": False, "environment": {**PLACES[0], "PYTHONHASHSEED": "7"}}],
    indirect=True,
)
def test_a_worker_may_opt_out(bench: Bench) -> None:
    run = bench.lease("decide")
    first, second = (repeat(bench, run) for _ in range(2))

    assert first["name"] == "JST"
    assert first["random"] != second["random"]
    assert first["own"] == second["own"]


PICKLED = """
import pickle, random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from byrote.executors.runtime import seeding as chance

def main():
    plain = [name for name in chance._FUNCTIONS if hasattr(random, name)]
    chance.install()
    for name in plain:
        function = getattr(random, name)
        assert pickle.loads(pickle.dumps(function)) is function, name
        assert (function.__module__, function.__qualname__) == ("random", name)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert 0 <= pool.submit(random.random).result() < 1
    print("pickled", len(plain))

if __name__ == "__main__":
    main()
"""


def test_functions_of_random_can_be_sent_to_a_process_pool(tmp_path: Path) -> None:
    program = tmp_path / "pickled.py"
    program.write_text(PICKLED, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=60
    )

    assert ended.stdout.startswith("pickled 2"), ended.stderr


def test_forked_processes_do_not_all_draw_the_same(bench: Bench) -> None:
    first, second = unpack(bench.run("fork").text)

    assert first != second


def test_inline_tasks_are_dealt_the_same_as_in_hands(bench: Bench) -> None:
    inline = Bench(Inline(deciding.app.registry, concurrency=9, worker="w", clock=_clock()))
    try:
        run = bench.lease("draw", 5)
        told = [repeat(b, run) for b in (bench, inline)]
        assert told[0] == told[1]
        # Outside an attempt, chance is chance.
        assert random.random() != random.random()
    finally:
        inline.close()


def _clock() -> Any:
    from byrote.assembly.clock import monotonic  # noqa: PLC0415 -- one user.

    return monotonic


def test_a_measured_attempt_reports_its_usage(bench: Bench) -> None:
    burnt, idled = bench.run("burn"), bench.run("idle", False)
    failed = bench.run("idle", True)

    assert burnt.usage["cpu_us"] >= 20_000
    assert burnt.usage["wall_us"] >= burnt.usage["cpu_us"]
    assert burnt.usage["rss_max"] > 2**20
    for outcome in (idled, failed):
        assert outcome.usage["wall_us"] >= 60_000
        assert 10_000 <= outcome.usage["cpu_us"] < outcome.usage["wall_us"] - 30_000
    assert failed.fault.message == "measured all the same"
    # Usage under a millisecond is not reported; a busy machine may delay an attempt.
    assert any(bench.run("draw", 1).usage is None for _ in range(50))


FAKE_NUMPY = """
import random as _random


class RandomState:
    def __init__(self, seed=None):
        self._own = _random.Random(repr(seed))

    def rand(self):
        return self._own.random()


class mtrand:
    _rand = RandomState()


rand = mtrand._rand.rand


def default_rng(seed=None):
    return _random.Random(repr(seed) if seed is not None else None)
"""
LATE_APP = """
from byrote import App

app = App()


@app.task
def draw(salt):
    import numpy.random

    rngs = [numpy.random.default_rng() for _ in range(2)]
    return [numpy.random.rand(), *(rng.random() for rng in rngs)]
"""


def test_numpy_is_seeded_from_the_run_after_its_import_on(tmp_path: Path) -> None:
    """A stand-in of numpy's shape; with the real one by hand, see docs/explanation."""
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("")
    (tmp_path / "numpy" / "random.py").write_text(FAKE_NUMPY)
    (tmp_path / "late.py").write_text(LATE_APP)
    bench = Bench(make_hands("late:app", hands=1, environment={"PYTHONPATH": str(tmp_path)}))
    try:
        bench.run("draw", 0)
        runs = [bench.lease("draw", salt) for salt in (1, 2)]
        first, second, other = (repeat(bench, run) for run in (runs[0], *runs))
    finally:
        bench.close()

    assert first == second
    assert len({*first, *other}) == 6


@pytest.mark.needs("commands")
def test_what_executed_each_attempt_is_stored_and_shown(
    url: str, db: Database, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYROTE_IMAGE_DIGEST", "sha256:feed")
    start_worker(APP, hands=2)
    ids = send(db, *(spec("decide", n) for n in range(9)), spec("command_decide", 1), spec("burn"))
    runs = await_end(db, *ids)

    assert len({number for run in runs[:9] for number in run.provenance}) == 1
    assert runs[9].provenance not in ([], runs[0].provenance)
    told = byrote("runs", "show", ids[0], "--json", url=url).object
    [doc] = told["provenance"]
    assert (doc["attempt"], doc["executor"], doc["image"]) == (1, "hand", "sha256:feed")
    assert doc["environment"] == {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"}
    assert doc["code"]["tasks"]["decide@1"]["tree"] == "tests"
    assert "psycopg" in doc["packages"]
    assert doc["worker"]["settings"]["set"] == []
    used = doc["code"]["uses"]["tests.executors.runtime.deciding"]
    assert "tests.executors.runtime.deciding" in used
    assert set(used) <= doc["code"]["modules"].keys()
    assert url not in str(doc)
    assert told["seed"] == seed_of(run_digest(ids[0]))
    shown = byrote("runs", "show", ids[0], url=url).out
    assert f"attempt 1: code {doc['code']['tasks']['decide@1']['function'][:12]}" in shown
    assert runs[10].usage[0]["attempt"] == 1
    assert "CPU 0." in byrote("runs", "show", ids[10], url=url).out
