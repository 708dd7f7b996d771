# SPDX-License-Identifier: MIT
"""Verified replay: executes earlier runs again in shadow runs, in this process, and compares.

Each session has its own queue, which no other worker serves, and a worker in this process: so the
code of this process executes, and no other worker's runs or slots are affected. Only a few shadow
runs are unfinished at a time; when the session is closed early, they are cancelled.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
import psycopg

from byrote.assembly.clock import monotonic
from byrote.assembly.executors import build_executor, worker_options
from byrote.assembly.identity import jitter, new_id, new_token, worker_id
from byrote.assembly.replay.environments import environments, last_doc
from byrote.assembly.replay.originals import choose, find
from byrote.assembly.replay.recorded_answers import RecordedAnswers
from byrote.assembly.settings import Settings
from byrote.core import events as event
from byrote.core.duration import duration
from byrote.core.errors import (
    BadOption,
    BadPayload,
    ByroteError,
    RightMissing,
    StoreRefused,
)
from byrote.core.json.codec import digest_of
from byrote.core.json.paths import read_paths
from byrote.core.ports.app import Announced
from byrote.core.ports.executor import Asks
from byrote.core.ports.replies import StepRow, UnknownTaskRef
from byrote.core.replay.verdict import (
    NotReplayable,
    Replayed,
    hide_values,
    judge_replay,
    key_of,
    obstacle,
)
from byrote.core.run import Run, ShownAs
from byrote.executors.replayed import ReplayExecutor
from byrote.store import queries
from byrote.store.rows import Environment
from byrote.store.runners.sync import Store
from byrote.store.worker import PostgresStore
from byrote.worker.context import WorkerContext
from byrote.worker.options import WorkerOptions
from byrote.worker.worker import SIGNALS_S, Worker

JOBS_MAX = 1_000
AHEAD = 2
"""Shadow runs per job that are enqueued or running."""
LOOK_S = 0.5
CANCEL_S = 3.0
LEAVE_S = 10.0
"""Time limit of closing: the worker's grace of two seconds, and some for its processes."""
_log = logging.getLogger("byrote.replay")
ENDED = (event.Succeeded, event.Failed, event.Cancelled, event.Lost)

type FindTask = Callable[[UnknownTaskRef], bool]
"""Whether the hands could execute a task that the app did not register."""


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How replays are executed and compared."""

    jobs: int = 1
    """Number of replays at once."""
    live_steps: bool = False
    """Whether steps are executed again instead of being answered from the record."""
    ignore: Sequence[str] = ()
    """Paths of a result that are not compared, such as $.at, besides those its task names."""
    hide_values: bool = False
    """Whether verdicts contain only the paths that differ, without values of the results."""

    def __post_init__(self) -> None:
        read_paths(self.ignore)
        if type(self.jobs) is not int or not 1 <= self.jobs <= JOBS_MAX:
            raise BadOption(f"Jobs are a number from 1 to {JOBS_MAX:,}, not {self.jobs!r}.")


class ReplaySession:
    """Executes replays of one app's tasks with its own worker and queue."""

    def __init__(
        self,
        app: Any,
        settings: Settings,
        store: Store,
        options: ReplayOptions,
        *,
        recognise: FindTask | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._ended: SimpleQueue[str] = SimpleQueue()
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._pending: dict[str, Run] = {}
        self._asked: dict[str, str] = {}
        """Requested runs that a memo answered, by the shadow of the run with the result."""
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
            recorded=settings,
        )
        self._app = built.app
        self._mute = built.mute
        self._pool = built.pool
        self._recognise = recognise
        self._replayer = ReplayExecutor(built.executor)
        self._answers = RecordedAnswers(store, asked, own, artifact_max=settings.artifact_max)
        chosen = _worker_options(name, self.queue, settings, options.jobs)
        context = WorkerContext(name, monotonic, jitter, new_token, self._emit)
        postgres = PostgresStore(store.address, listen=settings.listen)
        self._worker = Worker(
            lambda: postgres,
            self._replayer,
            chosen,
            context,
            asks=own,
            # It serves its own queue only: none of its names concerns other workers.
            announced=lambda: Announced(aliases=built.executor.tasks),
        )
        self._thread = threading.Thread(target=self._work, name="byrote-replay", daemon=True)

    # -- Start and stop --------------------------------------------------------------------------

    def open(self) -> None:
        """Start the worker; raises the error that keeps it from starting."""
        self._answers.start()
        self._thread.start()
        while not self._started.wait(SIGNALS_S):
            pass
        self._check()

    def _work(self) -> None:
        try:
            self._worker.run()
        except BaseException as error:  # noqa: BLE001 -- `_check` raises it in the caller's thread.
            self._failure = error
        finally:
            self._started.set()

    def _check(self) -> None:
        if isinstance(self._failure, RightMissing):
            # RightMissing has the exit code of a failed check, which here means "differs".
            raise StoreRefused(str(self._failure)) from self._failure
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Cancel unfinished shadow runs and stop; takes a few seconds even without the database."""
        if self._pending:
            cancelling = threading.Thread(target=self._cancel, name="byrote-cancel", daemon=True)
            cancelling.start()
            cancelling.join(CANCEL_S)
        self._worker.stop("the replay is over")
        if self._pending:
            self._worker.stop("the replay was interrupted")
        self._thread.join(LEAVE_S)
        self._answers.stop()

    def _cancel(self) -> None:
        with contextlib.suppress(psycopg.Error, ByroteError):
            self._store.all(queries.cancel(list(self._pending)))

    def _emit(self, events: Sequence[event.Event]) -> None:
        for emitted in events:
            if isinstance(emitted, event.WorkerStarted):
                self._started.set()
            elif isinstance(emitted, ENDED):
                self._ended.put(emitted.run)
            elif isinstance(emitted, event.Troubled):
                self._trouble(emitted)
            elif isinstance(emitted, event.Recovered):
                _log.warning("%s: the database answers again", emitted.what)

    def _trouble(self, trouble: event.Troubled) -> None:
        """Log the worker's trouble; an outcome that cannot be stored ends the replays."""
        if trouble.run:
            text = f"The outcome of a replay could not be stored ({trouble.what}): {trouble.error}"
            self._failure = self._failure or StoreRefused(text)
        else:
            _log.warning("%s: %s", trouble.what, trouble.error)

    # -- Replays ---------------------------------------------------------------------------------

    def perform(self, originals: Iterable[str]) -> Iterator[Replayed]:
        """Yield the verdict on each run as soon as it is known."""
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
            reason = "Its spec and result were pruned; only the event log may still mention it."
            return NotReplayable(original=original, task=None, why="expired", reason=reason)
        if run.memo_of is not None:
            # Another run computed the result that answered this one.
            run = self._store.first(queries.run(run.memo_of)) or run
        self._register(run)
        refused = obstacle(run, self._replayer.tasks) or self._about_steps(run)
        if refused is not None:
            return _about(refused, original)
        shadow = new_id()
        if run.id != original:
            self._asked[shadow] = original
        identity = ShownAs(run.id, run.queue, max(run.attempts, 1))
        self._replayer.identities[shadow] = identity
        self._pending[shadow] = run
        self._store.all(queries.shadow([(shadow, run.id)], queue=self.queue))
        return None

    def _register(self, run: Run) -> None:
        if self._pool is None or self._recognise is None or key_of(run) in self._replayer.tasks:
            return
        if self._recognise(UnknownTaskRef(run.queue, run.task, run.version)):
            self._pool.learn(key_of(run))

    def _about_steps(self, run: Run) -> NotReplayable | None:
        who, steps = key_of(run), self._store.all(queries.steps([run.id]))
        altered = next((step for step in steps if _altered(step)), None)
        if altered is not None:
            reason = f"The stored result of step {altered.sequence} ({altered.name!r}) was altered."
            return NotReplayable(original=run.id, task=who, why="altered", reason=reason)
        if steps and who in self._mute() and not self._options.live_steps:
            reason = f"It has recorded steps, but {who} is a program here, without a steps ledger."
            return NotReplayable(original=run.id, task=who, why="steps", reason=reason)
        return None

    def _next(self) -> Replayed:
        while True:
            try:
                candidates = [self._ended.get(timeout=LOOK_S)]
            except Empty:
                self._check()
                # An event may have been lost with a connection; read the rows.
                candidates = list(self._pending)
            for shadow in candidates:
                run = self._store.first(queries.run(shadow)) if shadow in self._pending else None
                if run is not None and run.finished:
                    return self._judge(self._pending.pop(shadow), run)

    def _environments_of(self, *runs: Run) -> dict[int, Environment]:
        # Cached: most runs of a task were executed by the same few environments.
        if not set().union(*map(_numbers, runs)) <= self._environments.keys():
            self._environments |= environments(self._store, *runs)
        return self._environments

    def _judge(self, original: Run, shadow: Run) -> Replayed:
        del self._replayer.identities[shadow.id]
        found = self._environments_of(original, shadow)
        ignored = [*self._options.ignore, *self._app().ignores.get(key_of(original), ())]
        verdict = judge_replay(
            original,
            shadow,
            ignore=read_paths(ignored),
            artifacts=self._answers.artifacts(shadow.id, original.id),
            steps=self._store.all(queries.steps([original.id])) if shadow.faults else (),
            arguments=self._answers.arguments(shadow.id),
            withheld=self._answers.withheld(shadow.id),
            provenances=(last_doc(original, found), last_doc(shadow, found)),
        )
        verdict = _about(verdict, self._asked.pop(shadow.id, original.id))
        return hide_values(verdict) if self._options.hide_values else verdict


def _about[V: Replayed](verdict: V, asked: str) -> V:
    """Return the verdict for the requested id; `memo_of` is the run that computed its result."""
    if verdict.original == asked:
        return verdict
    return msgspec.structs.replace(verdict, original=asked, memo_of=verdict.original)


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
        # The compared runs must not be archived or pruned meanwhile.
        housekeeping=False,
        # Fail at once on a missing database privilege instead of waiting for it.
        insists=False,
    )


@contextlib.contextmanager
def replay_session(
    app: Any,
    settings: Settings,
    store: Store,
    options: ReplayOptions,
    *,
    recognise: FindTask | None = None,
) -> Iterator[ReplaySession]:
    """Open a session for the app at `module:name`, in hands, or for an app object, inline."""
    chosen = (
        settings if isinstance(app, str) else msgspec.structs.replace(settings, executor="inline")
    )
    session = ReplaySession(app, chosen, store, options, recognise=recognise)
    try:
        session.open()
        yield session
    finally:
        session.close()


def replay_here(
    app: Any,
    which: str | None,
    *,
    task: str | None = None,
    last: int | None = None,
    since: datetime | timedelta | str | None = None,
    failed: bool = False,
    version: int | None = None,
    labels: Mapping[str, str] | None = None,
    **how: Any,
) -> Replayed | list[Replayed]:
    """Implementation of `App.replay`: one run by id or hash, or a task's newest runs."""
    if (which is None) == (task is None):
        raise BadOption("Replay one run, by its id or its spec's hash, or the runs of a task=.")
    options = ReplayOptions(**how)
    if isinstance(since, str):
        since = duration(since)
    if task is None:
        originals = [find(app.store, str(which))]
    else:
        originals = choose(
            app.store,
            task,
            last=last,
            since=since,
            failed=failed,
            version=version,
            labels=labels,
        )
    with replay_session(app, app.settings, app.store, options) as session:
        verdicts = list(session.perform(originals))
    return verdicts if which is None else verdicts[0]
