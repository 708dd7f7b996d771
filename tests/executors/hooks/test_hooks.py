# SPDX-License-Identifier: MIT
"""Hooks of an app, called by real workers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byrote import Retry
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import byrote
from tests.support import until
from tests.worker.harness import (
    PATH,
    StartWorker,
    await_end,
    await_status,
    send,
    send_one,
    spec,
)

Database = psycopg.Connection[Any]
APP = "tests.tasks.hooked:app"
EXECUTORS = pytest.mark.parametrize("executor", ["hand", "inline"])


class Calls:
    """The calls of hooks so far."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("HOOK_MARKS", str(path))

    def broken(self, *hooks: str) -> None:
        """Have these hooks raise."""
        self._monkeypatch.setenv("HOOK_FAILS", ",".join(hooks))

    def of(self, hook: str, *fields: str) -> list[Any]:
        """The calls of one hook; with fields, only those."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found = [call for line in lines if (call := json.loads(line))["hook"] == hook]
        return [tuple(call[name] for name in fields) for call in found] if fields else found

    def order(self) -> list[str]:
        return [json.loads(line)["hook"] for line in self.path.read_text().splitlines()]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(tmp_path / "calls.jsonl", monkeypatch)


@EXECUTORS
def test_every_hook_is_called_in_its_place(
    db: Database, start_worker: StartWorker, calls: Calls, executor: str
) -> None:
    worker = start_worker(APP, executor=executor, hands=2)
    ids = send(db, *(spec(name) for name in ("ok", "aok", "fatal")))
    await_end(db, *ids)
    until(lambda: len(calls.of("aend")) == 3)
    code = worker.stop()
    hands = len(calls.of("hand_start"))

    assert code == 0
    # The app has tasks of both modes, so there may be one hand more.
    assert hands in ({1} if executor == "inline" else {2, 3})
    assert sorted(calls.of("end", "run", "task", "status")) == sorted(
        [(ids[0], "ok", "SUCCESSFUL"), (ids[1], "aok", "SUCCESSFUL"), (ids[2], "fatal", "FAILED")]
    )
    assert Counter(calls.order()) == {
        "worker_start": 1, "worker_stop": 1, "hand_start": hands, "hand_stop": hands,
        "hand_close": hands, "around": 3, "failure": 1, "afailure": 1, "end": 3, "aend": 3,
    }  # fmt: skip
    assert len(calls.of("hand_start", "pid")) == len(set(calls.of("hand_start", "pid"))) == hands
    assert calls.order().index("worker_start") < calls.order().index("around")
    assert calls.order().index("worker_stop") > calls.order().index("aend")
    assert calls.order()[-2:] == ["hand_close", "hand_stop"]


@EXECUTORS
def test_a_failure_has_its_exception_and_what_follows(
    db: Database, start_worker: StartWorker, calls: Calls, executor: str
) -> None:
    start_worker(APP, executor=executor)
    ids = send(
        db,
        spec("flaky", retry=_retry(3), labels={"tenant": "acme"}),
        spec("aflaky", retry=_retry(2)),
    )
    await_end(db, *ids)
    until(lambda: len(calls.of("aend")) == 2)
    failures = calls.of("failure", "task", "attempt", "error", "will_retry", "raised", "tenant")

    assert sorted(failures) == [
        ("aflaky", 1, "always", True, True, "none"),
        ("aflaky", 2, "always", False, True, "none"),
        ("flaky", 1, "attempt 1", True, True, "acme"),
        ("flaky", 2, "attempt 2", True, True, "acme"),
    ]
    assert sorted(calls.of("end", "task", "status", "attempts", "fault")) == [
        ("aflaky", "FAILED", 2, "ValueError"),
        ("flaky", "SUCCESSFUL", 3, None),
    ]


def test_a_killed_process_is_reported_by_another(
    db: Database, start_worker: StartWorker, calls: Calls
) -> None:
    start_worker(APP)
    ids = send(db, spec("dies", labels={"of": "mine"}), spec("slow", timeout="0.2s"))
    await_end(db, *ids)
    until(lambda: len(calls.of("aend")) == 2)

    assert sorted(calls.of("failure", "task", "error", "fault", "will_retry")) == [
        ("dies", None, "HandCrashed", False),
        ("slow", None, "TimedOut", False),
    ]
    assert sorted(calls.of("end", "task", "status", "fault", "labels")) == [
        ("dies", "FAILED", "HandCrashed", {"of": "mine"}),
        ("slow", "FAILED", "TimedOut", {}),
    ]


def test_a_cancelled_run_ends_as_cancelled(
    db: Database, start_worker: StartWorker, calls: Calls
) -> None:
    start_worker(APP)
    run = send_one(db, spec("waits"))
    await_status(db, run, Status.RUNNING)
    fetch(db, queries.cancel([run]))
    until(lambda: calls.of("aend"))

    assert calls.of("end", "task", "status", "fault") == [("waits", "CANCELLED", None)]
    assert calls.of("failure") == []


@EXECUTORS
def test_errors_of_observing_hooks_change_no_outcome(
    db: Database, start_worker: StartWorker, calls: Calls, executor: str
) -> None:
    calls.broken("failure", "afailure", "end", "aend", "hand_stop", "hand_close", "worker_stop")
    worker = start_worker(APP, executor=executor)
    ids = send(db, spec("ok"), spec("flaky", retry=_retry(3)))
    runs = await_end(db, *ids)
    until(lambda: len(calls.of("aend")) == 2)

    assert worker.stop() == 0
    assert [(run.status, run.attempts) for run in runs] == [
        (Status.SUCCESSFUL, 1), (Status.SUCCESSFUL, 3),
    ]  # fmt: skip
    for hook, name in [("failed", "on_failure"), ("aended", "on_end"), ("closed", "on_hand_stop")]:
        assert f"The hook {hook} of {name} raised" in worker.text
    # The app has tasks of both modes, so there may be a second hand.
    hands = len(calls.of("hand_start"))
    counts = [len(calls.of(hook)) for hook in ("hand_stop", "hand_close", "worker_stop")]
    assert counts == [hands, hands, 1]


@EXECUTORS
def test_an_error_of_around_fails_the_attempt(
    db: Database, start_worker: StartWorker, calls: Calls, executor: str
) -> None:
    calls.broken("around")
    start_worker(APP, executor=executor)
    runs = await_end(db, *send(db, spec("ok"), spec("aok")))

    assert {run.status for run in runs} == {Status.FAILED}
    assert {run.faults[0]["message"] for run in runs} == {"around is broken"}


@EXECUTORS
@pytest.mark.parametrize("hook", ["hand_start", "worker_start"])
def test_a_broken_start_hook_is_the_first_and_only_report(
    start_worker: StartWorker, calls: Calls, executor: str, hook: str
) -> None:
    calls.broken(hook)
    worker = start_worker(APP, executor=executor, ready=False, hands=2)

    assert worker.wait(60) == 2
    assert worker.logs == []
    assert worker.text.count("Traceback") == 1
    assert f"of on_{hook} raised RuntimeError: {hook} is broken" in worker.text.splitlines()[-1]
    assert calls.of("around") == []


def test_a_hand_that_dies_in_a_start_hook_ends_the_worker(
    start_worker: StartWorker, calls: Calls
) -> None:
    calls.broken("die")
    worker = start_worker(APP, ready=False, hands=2)

    assert worker.wait(60) == 2
    assert "exited with code 9 before it was ready" in worker.text


def _retry(attempts: int) -> Retry:
    return Retry(attempts=attempts, delay_first="1ms", delay_max="1ms")


def test_a_replay_calls_around_and_the_hooks_of_the_hand_only(
    db: Database, url: str, start_worker: StartWorker, calls: Calls
) -> None:
    worker = start_worker(APP)
    run = send_one(db, spec("fatal"))
    await_end(db, run)
    until(lambda: calls.of("aend"))
    worker.stop()
    calls.path.unlink()
    done = byrote("replay", run, "--verify", "--app", APP, url=url, PYTHONPATH=PATH)

    assert done.code == 0, done.err
    hands = len(calls.of("hand_start"))
    assert Counter(calls.order()) == {
        "hand_start": hands, "around": 1, "hand_stop": hands, "hand_close": hands,
    }  # fmt: skip
    assert calls.of("around", "replaying") == [(True,)]
