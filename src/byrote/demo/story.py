# SPDX-License-Identifier: MIT
"""The demo from beginning to end: everything it reports is read from the database."""

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from byrote.assembly.app import App
from byrote.assembly.identity import jitter, new_id, new_token
from byrote.core.errors import ResultTimeout, RunFailed
from byrote.core.run import Run
from byrote.core.spec import Spec
from byrote.demo.kinds import KINDS, Kind
from byrote.demo.tasks import struck
from byrote.demo.verified import Verified, verifying
from byrote.lab.bench.stage import StageFailed, WorkerProcess, worker
from byrote.store import queries
from byrote.store.locks import move
from byrote.store.migrate import migrate

PATIENCE_S = 30.0
LOOK_S = 0.1
REPLAY_S = 10.0

type WatchRuns = Callable[[Sequence[Run]], None]
type Print = Callable[[str], None]


class Chapter(msgspec.Struct, frozen=True):
    """One kind of runs: what was sent, what was expected, what was seen."""

    kind: str
    about: str
    sent: int
    expected: str
    seen: Mapping[str, int]
    ok: bool
    example: str
    """The id of one of the runs."""


class ReplayStory(msgspec.Struct, frozen=True):
    """An earlier run's spec enqueued again by its hash, and the hashes of both results."""

    spec_hash: str
    original: str
    replay: str
    original_result_hash: str | None
    replay_result_hash: str | None
    ok: bool


class Story(msgspec.Struct, frozen=True):
    """Report of a whole demo."""

    ok: bool
    seconds: float
    """How long it took, the start of the server included."""
    worker: str | None
    """The id of the worker, as it registered itself."""
    queue: str
    """The queue the runs were sent to."""
    chapters: Sequence[Chapter]
    replay: ReplayStory
    verified: Sequence[Verified]
    """A run compared with a replay by the same code, and with one by changed code."""


class Play:
    """One performance: its own queue and label, so that others in the same database do not mix."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._note = folder / "struck.pid"
        self._label = new_token()[:8]
        self._app = App(url)
        self._store = self._app.store
        self._sent = 0
        self._struck = False
        self._cancelled = False

    def perform(self, *, began: float, watch: WatchRuns, announce: Print) -> Story:
        """Send everything, look on until it has ended, replay one run and verify another."""
        migrate(self._app.address, jitter=jitter)
        announce("Starting a worker with two hands.")
        with contextlib.closing(self._app), self._worker() as crew:
            self._send(1, announce)
            self._cancel("cancelled waiting", self._look())
            invoice = _one(self._until_ended(crew, watch, "invoice"), "invoice")
            announce(
                "Verifying one of the invoices: with the code that ran it, and with changed code."
            )
            with verifying(invoice, self._url, self._folder, self._settings) as verified:
                self._until_ended(crew, watch)
                self._send(2, announce)
                runs = self._until_ended(crew, watch)
                checks = verified()
            chapters = [_chapter(kind, runs) for kind in KINDS]
            announce("Replaying one of the quick runs by the hash of its spec.")
            replay = self._replay(_one(runs, "quick"))
            fine = [part.ok for part in chapters] + [part.ok for part in checks]
            return Story(
                all(fine) and replay.ok,
                time.monotonic() - began,
                self._worker_id(),
                self._queue,
                chapters,
                replay,
                checks,
            )

    def _worker(self) -> contextlib.AbstractContextManager[WorkerProcess]:
        app = "byrote.demo.tasks:app"
        return worker(app, self._url, folder=self._folder, drain=False, **self._settings)

    @property
    def _settings(self) -> dict[str, str]:
        return {"queues": self._queue, "hands": "2", "grace": "2s", "log_format": "json"}

    @property
    def _queue(self) -> str:
        return f"demo-{self._label}"

    def _send(self, act: int, announce: Print) -> None:
        kinds = [kind for kind in KINDS if kind.act == act]
        announce(f"Sending {sum(kind.count for kind in kinds)} runs in one transaction.")
        specs = (spec for kind in kinds for spec in self._specs(kind))
        self._sent += len(self._app.enqueue_many(specs))

    def _specs(self, kind: Kind) -> Iterator[Spec]:
        labels = {"demo": self._label, "kind": kind.name}
        task = kind.task.using(queue=self._queue, labels=labels)
        # Numbered through all kinds, so that every spec has its own hash.
        first = sum(other.count for other in KINDS[: KINDS.index(kind)])
        note = [str(self._note)] if kind.task.name == struck.name else []
        return (task.spec(n, *note) for n in range(first, first + kind.count))

    def _look(self) -> list[Run]:
        return self._store.all(queries.runs(labels={"demo": self._label}, limit=self._sent))

    def _until_ended(
        self, crew: WorkerProcess, watch: WatchRuns, kind: str | None = None
    ) -> list[Run]:
        """Look on until every run has ended, or every one of a kind."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            runs = self._look()
            watch(runs)
            due = [run for run in runs if kind in (None, run.labels["kind"])]
            if all(run.finished for run in due) or time.monotonic() > deadline:
                return runs
            crew.check()
            self._interfere(runs)
            time.sleep(LOOK_S)

    def _interfere(self, runs: Sequence[Run]) -> None:
        """Interfere from outside: kill one hand with -9, and cancel running runs."""
        if not self._struck and self._note.exists():
            self._struck = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(self._note.read_text()), signal.SIGKILL)
        sleepers = [run for run in runs if run.labels["kind"] == "cancelled running"]
        if not self._cancelled and all(run.started_at for run in sleepers):
            self._cancelled = True
            self._cancel("cancelled running", runs)

    def _cancel(self, kind: str, runs: Sequence[Run]) -> None:
        ids = [run.id for run in runs if run.labels["kind"] == kind]
        move(queries.cancel, ids, self._store.all)

    def _replay(self, run: Run) -> ReplayStory:
        original = self._store.first(queries.latest_by_hash(run.spec_hash)) or run.id
        again = new_id()
        self._store.all(queries.replay(original=original, id=again))
        earlier, later = self._app.run(original), self._app.run(again)
        # A run without a result has no hash, and the story reports that.
        with contextlib.suppress(RunFailed, ResultTimeout):
            later.result(timeout=REPLAY_S)
        hashes = (earlier.refresh().result_hash, later.refresh().result_hash)
        ok = hashes[0] is not None and hashes[0] == hashes[1]
        return ReplayStory(run.spec_hash, original, again, *hashes, ok)

    def _worker_id(self) -> str | None:
        found = [row.worker for row in self._store.all(queries.workers())
                 if self._queue in row.queues]  # fmt: skip
        return found[0] if found else None


def _one(runs: Sequence[Run], kind: str) -> Run:
    return next(run for run in runs if run.labels["kind"] == kind)


def _chapter(kind: Kind, runs: Sequence[Run]) -> Chapter:
    ours = [run for run in runs if run.labels["kind"] == kind.name]
    if not ours:
        raise StageFailed(f"None of the {kind.count} {kind.name} runs is in the database.")
    seen = Counter(kind.fate(run, runs) for run in ours)
    ok = seen == {kind.expected: kind.count}
    return Chapter(kind.name, kind.about, kind.count, kind.expected, dict(seen), ok, ours[0].id)
