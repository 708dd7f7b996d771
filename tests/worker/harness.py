# SPDX-License-Identifier: MIT
"""Starts workers as processes, and waits for facts: rows, log lines, marks a task left behind."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.run import Run
from byrote.core.spec import Delivery, Spec, describe
from byrote.core.state import FINAL, Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import run_of, state_of, until

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
"""Python path of a worker; `tests/system/mac_like` may be on ours."""
EXECUTORS = ("hand", "inline", pytest.param("command", marks=pytest.mark.needs("commands")))
"""The executors of a worker; commands need Linux."""
Database = psycopg.Connection[Any]
_numbers = itertools.count()


def spec(task: str, *args: Any, **delivery: Any) -> Spec:
    """Describe a call of a task by its name, and how to deliver it."""
    return describe(task, 1, list(args), {}, delivery=Delivery(**delivery))


def send(db: Database, *specs: Spec) -> list[str]:
    """Accept specs as runs and give their ids."""
    sent = [(new_id(), spec) for spec in specs]
    fetch(db, queries.enqueue(sent))
    return [run_id for run_id, _ in sent]


def send_one(db: Database, spec: Spec) -> str:
    """Accept one spec as a run and give its id."""
    return send(db, spec)[0]


def await_status(db: Database, run_id: str, status: Status, within: float = 30.0) -> Run:
    """The run, as soon as it has this status."""
    until(
        lambda: run_of(db, run_id).status is status,
        within,
        f"the run did not become {status} in {within} s",
    )
    return run_of(db, run_id)


def await_end(db: Database, *ids: str, within: float = 30.0) -> list[Run]:
    """The runs, as soon as all of them are in a terminal state."""
    ended = """select count(*) from byrote_runs where result_id = any(%s::uuid[])
               and status in ('SUCCESSFUL', 'FAILED', 'CANCELLED')"""

    def over() -> bool:
        row = db.execute(ended, (list(ids),)).fetchone()
        return row is not None and row[0] >= len(ids)

    try:
        # Looking at thousands of rows all the time would slow down what we look at.
        until(over, within, every=0.01 if len(ids) <= 100 else 0.1)
    except AssertionError:
        left = [brief(run) for run in (run_of(db, i) for i in ids) if run.status not in FINAL]
        raise AssertionError(f"{len(left)} runs not ended in {within} s: {left[:3]}") from None
    return [run_of(db, run_id) for run_id in ids]


def brief(run: Run) -> str:
    """A run in a few words, for the message of a failing test."""
    lease = f"leased by {run.leased_by} until {run.leased_until}"
    numbers = f"attempts {run.attempts}, charged {run.charged}, losses {run.losses}"
    return f"{run.task} {run.id} {run.status}, {numbers}, {lease}"


def await_row(db: Database, sql: str, *args: Any, within: float = 30.0) -> tuple[Any, ...]:
    """The first row of a statement, as soon as it returns one."""
    return until(lambda: db.execute(sql, args).fetchone(), within, f"no row: {sql} {args}")


def await_calm(db: Database, worker: "WorkerProcess") -> None:
    """Wait until a worker is idle and its quick looks are over: only a hint wakes it now."""
    calm = """select 1 from byrote_workers, pg_stat_activity
              where worker_id = %s and idle and application_name like %s
              and state = 'idle' and query_start < clock_timestamp() - interval '0.2 s'"""
    await_row(db, calm, worker.name, f"%{worker.name} claim")


def history(db: Database, run_id: str) -> list[tuple[str, int, str | None]]:
    """The events of a run: kind, attempt and worker, in order."""
    told = "select kind, attempt, worker from byrote_event_log where result_id = %s order by move"
    return db.execute(told, (run_id,)).fetchall()


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    return state_of(pid) not in {"", "Z"}


class Marks:
    """A file that tasks append words to, whichever process they run in."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    @property
    def words(self) -> list[str]:
        """Every word so far."""
        path = Path(self.path)
        return path.read_text().split() if path.exists() else []

    def await_words(self, count: int, within: float = 30.0) -> list[str]:
        """The words, as soon as there are so many."""
        until(lambda: len(self.words) >= count, within, f"only {self.words} in {self.path}")
        return self.words


class WorkerProcess:
    """One worker process of the test's own, and what it has logged."""

    def __init__(
        self, app: str, url: str, log: Path, *, drain: bool = False, **settings: Any
    ) -> None:
        asked = {"app": app, "drain": drain, "settings": {"database_url": url, **settings}}
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.worker.runner", json.dumps(asked)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": PATH, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        return self.process.pid

    @property
    def text(self) -> str:
        """Everything it has written."""
        return self._log.read_text(errors="replace")

    @property
    def logs(self) -> list[dict[str, Any]]:
        """Its log lines; other lines are output of tasks."""
        lines = [line for line in self.text.split("\n")[:-1] if line.startswith('{"at"')]
        return [json.loads(line) for line in lines]

    def logged(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """Its log lines of one event with these fields."""
        wanted = {"event": event, **fields}
        return [line for line in self.logs if wanted.items() <= line.items()]

    def await_log(self, event: str, within: float = 30.0, **fields: Any) -> dict[str, Any]:
        """The first log line of an event, as soon as it is there."""
        found = until(
            lambda: self.logged(event, **fields) or self._ended(),
            within,
            f"no {event} {fields} in {within} s",
        )
        return found[0]

    def _ended(self) -> list[dict[str, Any]]:
        if self.process.poll() is not None:
            raise AssertionError(
                f"the worker ended ({self.process.returncode}):\n{self.text[-2000:]}"
            )
        return []

    @property
    def name(self) -> str:
        """Its worker id."""
        return str(self.await_log("WorkerStarted")["worker"])

    @property
    def hands(self) -> list[int]:
        """The process ids of its hands that are alive."""
        return [line["pid"] for line in self.logged("HandStarted") if alive(line["pid"])]

    def signal(self, number: signal.Signals) -> None:
        """Send the supervisor a signal."""
        self.process.send_signal(number)

    def wait(self, within: float = 15.0) -> int:
        """Its exit code, as soon as it has ended."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the worker did not end in {within} s:\n{self.text[-2000:]}"
            ) from None

    def stop(self, within: float = 15.0) -> int:
        """Ask it to stop; its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(within)

    def destroy(self) -> None:
        """End it whatever it does; its hands go with it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        for pid in self.hands:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def start_worker(url: str, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts workers on the test's database, waits until they claim, ends them with the test."""
    started: list[WorkerProcess] = []

    def start(
        app: str = "tests.tasks.fates:app", *, ready: bool = True, **settings: Any
    ) -> WorkerProcess:
        defaults = {"hands": 1, "concurrency": 10, "lease": "30s", "grace": "5s"}
        where = settings.pop("url", url)
        log = tmp_path / f"worker-{next(_numbers)}.log"
        worker = WorkerProcess(app, where, log, **defaults | settings)
        started.append(worker)
        if ready:
            worker.await_log("WorkerStarted")
        return worker

    yield start
    for worker in started:
        worker.destroy()


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    """A place where tasks of this test leave marks."""
    return Marks(tmp_path / "marks")
