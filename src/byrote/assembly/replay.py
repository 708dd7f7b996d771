# SPDX-License-Identifier: MIT
"""Verified replay: executes earlier runs again in shadow runs, here, and compares.

Each stage has a queue of its own that no other worker serves, and a worker that lives in this
process: so the code that is asked about executes, and nobody else's runs or slots are touched. Only
a few shadow runs are under way at a time; when the stage is left early, they are cancelled.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
import psycopg

from byrote.assembly.clock import monotonic
from byrote.assembly.environments import environments, last_doc
from byrote.assembly.executing import build_executor, worker_options
from byrote.assembly.identity import chance, new_id, new_token, worker_id
from byrote.assembly.prompter import Prompter
from byrote.assembly.settings import Settings
from byrote.core import event
from byrote.core.answer import StepRow, Stranger
from byrote.core.codec import digest_of
from byrote.core.duration import duration
from byrote.core.errors import BadOption, BadPayload, UnknownRun
from byrote.core.ignore import read_paths
from byrote.core.ports import Asks
from byrote.core.replay import NotReplayable, Replayed, judge_replay, key_of, obstacle
from byrote.core.run import Run
from byrote.executors.rehearsal import Part, Rehearsal
from byrote.store import queries, replay
from byrote.store.lines import Lines
from byrote.store.rows import Environment
from byrote.store.sync import Store
from byrote.worker.means import Means
from byrote.worker.worker import Worker, WorkerOptions

JOBS_MAX = 1_000
LAST = 500
"""Runs of a task that are replayed when nobody says how many."""
LAST_MAX = 10_000
AHEAD = 2
"""Shadow runs per job that are enqueued or under way."""
LOOK_S = 0.5
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
ENDED = (event.Succeeded, event.Failed, event.Cancelled, event.Swept)

type Recognise = Callable[[Stranger], bool]
"""Says of a task that the app did not announce whether its hands could execute it."""


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How replays are executed and compared."""

    jobs: int = 1
    """How many at once."""
    live_steps: bool = False
    """Whether steps are executed again instead of being answered from the record."""
    ignore: Sequence[str] = ()
    """Paths of a result that do not count, such as $.at, besides those its task names."""

    def __post_init__(self) -> None:
        read_paths(self.ignore)
        if type(self.jobs) is not int or not 1 <= self.jobs <= JOBS_MAX:
            raise BadOption(f"Jobs are a number from 1 to {JOBS_MAX:,}, not {self.jobs!r}.")


def find(store: Store, which: str) -> str:
    """The id of the run meant by an id or the hash of a spec; UnknownRun if nobody knows it.

    Of the runs of a spec it is the newest that has ended, if one has.
    """
    if _HASH.fullmatch(which):
        found = store.first(queries.latest_by_hash(which.lower(), ended=True))
    elif _ID.fullmatch(which):
        known = store.all(queries.known(which))[0] or store.all(replay.remembered(which))[0]
        found = which.lower() if known else None
    else:
        raise BadOption(f"{which!r} is neither the id of a run nor the hash of a spec.")
    if found is None:
        raise UnknownRun(which)
    return found


def choose(
    store: Store,
    task: str,
    *,
    last: int | None = None,
    since: datetime | timedelta | None = None,
    failed: bool = False,
) -> list[str]:
    """The newest runs of a task that ended by themselves; since a moment, all up to a limit."""
    limit = last if last is not None else LAST if since is None else LAST_MAX
    if not 1 <= limit <= LAST_MAX:
        raise BadOption(f"Replay the last 1 to {LAST_MAX:,} runs, not {last!r}.")
    return store.all(replay.originals(task, limit=limit, since=since, failed=failed))


class Stage:
    """Where replays of one app's tasks are executed."""

    def __init__(
        self,
        app: Any,
        settings: Settings,
        store: Store,
        options: ReplayOptions,
        *,
        recognise: Recognise | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._ended: SimpleQueue[str] = SimpleQueue()
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._pending: dict[str, Run] = {}
        self._environments: dict[int, Environment] = {}
        self.queue = f"byrote.shadow.{new_token()}"
        name = worker_id()
        own: Asks = SimpleQueue()
        asked: Asks = SimpleQueue()
        inline = settings.executor == "inline"
        built = build_executor(
            app,
            msgspec.structs.replace(
                settings, concurrency=options.jobs, threads=options.jobs if inline else 1
            ),
            name,
            emit=self._emit,
            hands=0 if inline else options.jobs,
            asks=asked,
            replay="live" if options.live_steps else "recorded",
            told=settings,
        )
        self._app = built.app
        self._mute = built.mute
        self._pool = built.pool
        self._recognise = recognise
        self._rehearsal = Rehearsal(built.executor)
        self._prompter = Prompter(store, asked, own, artifact_max=settings.artifact_max)
        wanted = _worker_options(name, self.queue, settings, options.jobs)
        means = Means(name, monotonic, chance, new_token, self._emit)
        lines = Lines(store.door, listen=settings.listen)
        self._worker = Worker(lambda: lines, self._rehearsal, wanted, means, asks=own)
        self._thread = threading.Thread(target=self._work, name="byrote-stage", daemon=True)

    # -- Coming and going ------------------------------------------------------------------------

    def open(self) -> None:
        """Start the worker; raises what keeps it from starting."""
        self._prompter.start()
        self._thread.start()
        self._started.wait()
        self._check()

    def _work(self) -> None:
        try:
            self._worker.run()
        except BaseException as error:  # noqa: BLE001 -- raised again where somebody waits for us.
            self._failure = error
        finally:
            self._started.set()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Cancel what is under way, and leave."""
        with contextlib.suppress(psycopg.Error):
            if self._pending:
                self._store.all(queries.cancel(list(self._pending)))
        self._worker.stop("the replay is over")
        if self._pending:
            self._worker.stop("the replay was broken off")
        self._thread.join()
        self._prompter.stop()

    def _emit(self, events: Sequence[event.Event]) -> None:
        for told in events:
            if isinstance(told, event.WorkerStarted):
                self._started.set()
            elif isinstance(told, ENDED):
                self._ended.put(told.run)

    # -- Replays ---------------------------------------------------------------------------------

    def perform(self, originals: Iterable[str]) -> Iterator[Replayed]:
        """The verdict on each run, as soon as it is there."""
        for original in originals:
            verdict = self._begin(original)
            if verdict is not None:
                yield verdict
            while len(self._pending) >= AHEAD * self._options.jobs:
                yield self._next()
        while self._pending:
            yield self._next()

    def _begin(self, original: str) -> NotReplayable | None:
        run = self._store.first(queries.run(original))
        if run is None:
            reason = "Its spec and result were pruned; at most the event log still knows of it."
            return NotReplayable(original=original, task=None, why="expired", reason=reason)
        if run.memo_of is not None:
            # What was answered from memory was computed by another run.
            run = self._store.first(queries.run(run.memo_of)) or run
        self._get_to_know(run)
        refused = obstacle(run, self._rehearsal.tasks) or self._about_steps(run)
        if refused is not None:
            return refused
        shadow = new_id()
        part = Part(run.id, run.queue, max(run.attempts, 1))
        self._rehearsal.cast[shadow] = part
        self._pending[shadow] = run
        self._store.all(replay.shadow([(shadow, run.id)], queue=self.queue))
        return None

    def _get_to_know(self, run: Run) -> None:
        if self._pool is None or self._recognise is None or key_of(run) in self._rehearsal.tasks:
            return
        if self._recognise(Stranger(run.queue, run.task, run.version)):
            self._pool.learn(key_of(run))

    def _about_steps(self, run: Run) -> NotReplayable | None:
        who, steps = key_of(run), self._store.all(queries.steps([run.id]))
        altered = next((step for step in steps if _altered(step)), None)
        if altered is not None:
            reason = f"The stored result of step {altered.sequence} ({altered.name!r}) was altered."
            return NotReplayable(original=run.id, task=who, why="altered", reason=reason)
        if steps and who in self._mute() and not self._options.live_steps:
            reason = f"It has recorded steps, and {who} is a program here that has no steps ledger."
            return NotReplayable(original=run.id, task=who, why="steps", reason=reason)
        return None

    def _next(self) -> Replayed:
        while True:
            try:
                candidates = [self._ended.get(timeout=LOOK_S)]
            except Empty:
                self._check()
                # A word may have been lost with a connection; the rows have it.
                candidates = list(self._pending)
            for shadow in candidates:
                run = self._store.first(queries.run(shadow)) if shadow in self._pending else None
                if run is not None and run.finished:
                    return self._judge(self._pending.pop(shadow), run)

    def _environments_of(self, *runs: Run) -> dict[int, Environment]:
        # Of a task's runs most were executed by the same few.
        if not set().union(*map(_numbers, runs)) <= self._environments.keys():
            self._environments |= environments(self._store, *runs)
        return self._environments

    def _judge(self, original: Run, shadow: Run) -> Replayed:
        del self._rehearsal.cast[shadow.id]
        found = self._environments_of(original, shadow)
        ignored = [*self._options.ignore, *self._app.ignores.get(key_of(original), ())]
        return judge_replay(
            original,
            shadow,
            ignore=read_paths(ignored),
            artifacts=self._prompter.artifacts(shadow.id, original.id),
            steps=self._store.all(queries.steps([original.id])) if shadow.faults else (),
            provenances=(last_doc(original, found), last_doc(shadow, found)),
        )


def _numbers(run: Run) -> set[int]:
    return {number for number in run.provenance if number is not None}


def _altered(step: StepRow) -> bool:
    if step.result_json is None:
        return False
    try:
        return digest_of(step.result_json).hex() != step.result_hash
    except BadPayload:
        return True


def _worker_options(name: str, queue: str, settings: Settings, jobs: int) -> WorkerOptions:
    hands = 0 if settings.executor == "inline" else jobs
    return msgspec.structs.replace(
        worker_options(settings, name, hands=hands, drain=False),
        queues={queue: 1},
        concurrency=jobs,
        grace=timedelta(seconds=2),
        # What is compared must not be archived or pruned meanwhile.
        housekeeping=False,
    )


@contextlib.contextmanager
def open_stage(
    app: Any,
    settings: Settings,
    store: Store,
    options: ReplayOptions,
    *,
    recognise: Recognise | None = None,
) -> Iterator[Stage]:
    """A stage for the app at `module:name`, in hands, or for one that is here, in this process."""
    chosen = (
        settings if isinstance(app, str) else msgspec.structs.replace(settings, executor="inline")
    )
    stage = Stage(app, chosen, store, options, recognise=recognise)
    try:
        stage.open()
        yield stage
    finally:
        stage.close()


def replay_here(
    app: Any,
    which: str | None,
    *,
    task: str | None = None,
    last: int | None = None,
    since: datetime | timedelta | str | None = None,
    failed: bool = False,
    jobs: int = 1,
    live_steps: bool = False,
    ignore: Sequence[str] = (),
) -> Replayed | list[Replayed]:
    """What `App.replay` promises: one run by id or hash, or a task's newest; in this process."""
    if (which is None) == (task is None):
        raise BadOption("Replay one run, by its id or its spec's hash, or the runs of a task=.")
    options = ReplayOptions(jobs=jobs, live_steps=live_steps, ignore=ignore)
    if isinstance(since, str):
        since = duration(since)
    if task is None:
        wanted = [find(app.store, str(which))]
    else:
        wanted = choose(app.store, task, last=last, since=since, failed=failed)
    with open_stage(app, app.settings, app.store, options) as stage:
        verdicts = list(stage.perform(wanted))
    return verdicts if which is None else verdicts[0]
