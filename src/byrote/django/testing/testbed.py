# SPDX-License-Identifier: MIT
"""A worker for tests: the same statements and policy as a worker, on the test's own connection."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import connections
from django.db.models import Min
from psycopg.pq import TransactionStatus

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import new_token
from byrote.core.duration import micros
from byrote.core.json.codec import unpack
from byrote.core.memo import Memo, memo_keep
from byrote.core.outcome import Failed, Outcome
from byrote.core.policy import Fail, judge
from byrote.core.replay.provenance import Provenance
from byrote.core.run import Leased
from byrote.core.verdict import LETTERS, row_of
from byrote.django.backend.backend import VERSION, Backend, definition_at
from byrote.django.backend.database import fetch
from byrote.django.errors import TaskTimedOut
from byrote.django.models import TaskRun
from byrote.django.worker.attempt import Attempts
from byrote.django.worker.memo import code_for
from byrote.django.worker.signals import FINAL
from byrote.executors.runtime import call
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.job import Job, job_of
from byrote.store import queries
from byrote.testing.attempt import AttemptEnd
from byrote.testing.clock import settable
from byrote.testing.timeouts import TimeUp, limited

WORKER = "test"
LEASE = timedelta(days=1)
BY_ITSELF = ("retry", "snooze", "sleep")
"""Wait reasons caused by the task itself."""


class Testbed:
    """Executes the runs of one backend, attempt by attempt, in this thread."""

    def __init__(self, backend: Backend, *, queue: str | None, raise_errors: bool) -> None:
        self._backend = backend
        self._queue = queue
        self._raise_errors = raise_errors
        self._done: dict[str, None] = {}
        self.attempts = 0

    # -- Time ------------------------------------------------------------------------------------

    @contextmanager
    def time(self, now: datetime | None) -> Iterator[None]:
        """Freeze the database time of this connection until `move_on` advances it."""
        self._set_clock(now)
        try:
            yield
        finally:
            self._set_clock(None)

    def _set_clock(self, now: datetime | None) -> None:
        text = "" if now is None else now.isoformat()
        with connections[self._backend.database].cursor() as cursor:
            if now is not None:
                cursor.execute(settable().decode())
            cursor.execute("select set_config('byrote.now', %s, false)", [text])

    def move_on(self, *, include_deferred: bool) -> bool:
        """Advance the time to when the next run becomes due; False if there is none."""
        waiting = self._runs().filter(status="WAITING")
        if not include_deferred:
            waiting = waiting.filter(wait_reason__in=BY_ITSELF)
        next_at = waiting.aggregate(at=Min("run_after"))["at"]
        if next_at is None:
            return False
        self._set_clock(next_at)
        return True

    # -- Work ------------------------------------------------------------------------------------

    def _runs(self) -> Any:
        runs = TaskRun.objects.using(self._backend.database)
        return runs if self._queue is None else runs.filter(queue_name=self._queue)

    def _ready(self) -> Any:
        return self._runs().filter(status="READY").order_by("rank")

    def ready(self) -> bool:
        """Whether one of the backend's tasks is ready to be executed."""
        names = self._ready().order_by().values_list("task_path", flat=True).distinct()
        return any(self._backend.path_of(name) for name in names)

    def round(self) -> None:
        """Execute the runs that are due now one by one, in the order of a worker."""
        fetch(self._backend.database, queries.promote())
        attempts = Attempts(self._backend, borrowed=True)
        for _ in range(self._ready().count()):
            for run in self._claim():
                self._attempt(run, attempts)

    def _claim(self) -> Sequence[Leased]:
        ready = self._ready().values_list("queue_name", "task_path")
        ours = [pair for pair in ready if self._backend.path_of(pair[1]) is not None]
        if not ours:
            return ()
        query = queries.claim(
            quotas={ours[0][0]: 1},
            tasks=list({f"{name}@{VERSION}" for _, name in ours}),
            worker=WORKER,
            token=new_token(),
            lease_for=LEASE,
        )
        return fetch(self._backend.database, query)

    def _attempt(self, run: Leased, attempts: Attempts) -> None:
        self.attempts += 1
        self._done[run.id] = None
        path = self._backend.path_of(run.task) or ""
        definition = definition_at(path)
        is_async = inspect.iscoroutinefunction(definition.func)
        ctx = Context.of(job := job_of(0, run))
        error, result = execute(attempts.task_of(definition), job, ctx, is_async=is_async)
        self._write_progress(run, ctx)
        if isinstance(error, TaskTimedOut):
            attempts.signals.forget(run.id)
        run.provenance = self._remembering(definition, path)
        outcome = call.outcome_of(result, run.attempt, WORKER)
        self._store(run, outcome, attempts)
        if not self._raise_errors or not isinstance(outcome, Failed):
            return
        if isinstance(judge(run, outcome), Fail):
            raise error or AssertionError(f"{run.task} failed: {outcome.fault.message}")

    def _remembering(self, definition: Any, path: str) -> Provenance | None:
        """Provenance with the code hash of a task that has a memo; None without a memo."""
        keep: Any = getattr(definition, "memo", None)
        code = None if keep is None else code_for(self._backend.alias, path)
        if code is None:
            return None
        memo = Memo(code, micros(memo_keep(keep)))
        return Provenance("", "", memos={f"{self._backend.name_of(path)}@{VERSION}": memo})

    def _write_progress(self, run: Leased, ctx: Context) -> None:
        """Write the attempt's last progress report; a worker writes it during the attempt."""
        if ctx.reported is not None:
            report = {**msgspec.structs.asdict(ctx.reported), "id": run.id, "token": run.token}
            fetch(self._backend.database, queries.progress([report]))

    def _store(self, run: Leased, outcome: Outcome, attempts: Attempts) -> None:
        verdict = judge(run, outcome)
        fetch(self._backend.database, queries.finish([row_of(run, outcome, verdict)]))
        if LETTERS[type(verdict)] in FINAL:
            attempts.signals.finish(run.id, LETTERS[type(verdict)])

    def results(self) -> list[Any]:
        """The results of all executed runs, in order."""
        return [self._backend.get_result(run_id) for run_id in self._done]


def execute(task: Any, job: Job, ctx: Context, *, is_async: bool) -> AttemptEnd:
    """Make one attempt in this thread, within its timeout if it has one."""
    limit_ms: int | None = job.timeout_ms
    limit_s = None if limit_ms is None else limit_ms / 1000
    began = monotonic()
    error, result = _called(task, job, ctx, limit_s=limit_s, is_async=is_async)
    if limit_ms is None or limit_s is None:
        return error, result
    if isinstance(error, TimeUp) or monotonic() - began >= limit_s:
        late = call.timed_out(job.slot, limit_ms)
        return TaskTimedOut(late.fault.message), late
    return error, result


def _called(
    task: Any, job: Job, ctx: Context, *, limit_s: float | None, is_async: bool
) -> AttemptEnd:
    with usable_connections():
        try:
            spec = unpack(job.spec_json)
            with limited(limit_s, is_async=is_async):
                value = task.function(ctx, *spec["args"], **spec["kwargs"])
        except BaseException as error:  # noqa: BLE001 -- any exception is an outcome.
            inner = error.error if isinstance(error, call.Decided) else error
            return inner, call.raised(job.slot, error)
        return None, call.returned(job.slot, value)


@contextmanager
def usable_connections() -> Iterator[None]:
    """Protect the test's transaction with a savepoint from statements that fail in a task."""
    within = [one for one in connections.all(initialized_only=True) if one.in_atomic_block]
    savepoints = [(one, one.savepoint()) for one in within]
    yield
    for connection, savepoint in savepoints:
        status = connection.connection.info.transaction_status
        if connection.needs_rollback or status == TransactionStatus.INERROR:
            connection.needs_rollback = False
            connection.savepoint_rollback(savepoint)
        else:
            connection.savepoint_commit(savepoint)
