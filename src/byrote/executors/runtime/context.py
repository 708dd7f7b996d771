# SPDX-License-Identifier: MIT
"""The attempt that a task is in: its run, number, deadline, steps and logger."""

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload
from uuid import UUID

import msgspec

from byrote.core.duration import DurationLike
from byrote.core.errors import BadOption, WaitTimeout
from byrote.core.json.codec import unpack
from byrote.core.json.seed import SEED_LABEL, place_digest, run_digest, seed_of, uuid_bits
from byrote.core.policy import Retry
from byrote.core.progress import ProgressReport, report_of
from byrote.executors.runtime.asks import AskClient
from byrote.executors.runtime.job import Job
from byrote.executors.runtime.once import MARKED, ado_once, arecite_once, do_once, recite_once
from byrote.executors.runtime.seeding import Random, seeded
from byrote.executors.runtime.steps.branches import Branch
from byrote.executors.runtime.steps.call import EVENT, SLEEP, args_hash, check_name, current_step
from byrote.executors.runtime.steps.callers import AsyncSteps, SyncSteps
from byrote.executors.runtime.steps.ledger import Ledger, StepSource
from byrote.executors.runtime.steps.recorded_ledger import RecordedLedger

if TYPE_CHECKING:
    from byrote.artifacts.artifact import Artifact
    from byrote.executors.runtime.artifacts import ArtifactWriter
    from byrote.executors.runtime.progress import AttemptProgress

_RAISE: Any = object()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Context:
    """The attempt a task is in; a first parameter named `ctx` receives it."""

    def __init__(
        self,
        *,
        run_id: str,
        task: str,
        queue: str,
        attempt: int,
        labels: Mapping[str, str],
        digest: bytes | None = None,
        as_of_us: int = 0,
    ) -> None:
        self.run_id = run_id
        """The run's id: the same for every attempt, so a good idempotency key."""
        self.task = task
        """The name of the task."""
        self.queue = queue
        """The queue of the run."""
        self.attempt = attempt
        """1 for the first try."""
        self.labels = labels if SEED_LABEL not in labels else _without_seed(labels)
        """The labels that the caller set."""
        self.deadline: float | None = None
        """Monotonic time (`time.monotonic()`) at which the attempt's timeout ends it, or None."""
        self.traceparent: str | None = None
        """The W3C trace context of the caller, if it sent one."""
        self._ask_client: AskClient | None = None
        self._slot = 0
        self._given = digest, labels
        self._as_of_us = as_of_us
        self._randoms: dict[str, Random] = {}
        self._uuids: Counter[str] = Counter()
        self.root: Branch | None = None
        """The branch of the task itself, where its calls are counted."""
        self.reported: ProgressReport | None = None
        """The last progress that the task reported."""
        self.reports: AttemptProgress | None = None
        """Sends the progress reports; None until the first one."""

    @classmethod
    def of(
        cls, job: Job, ask_client: AskClient | None = None, *, digest: bytes | None = None
    ) -> "Context":
        """The context of a job from a message; `digest` if it is not that of its run."""
        labels = msgspec.json.decode(job.labels_json) if job.labels_json else {}
        ctx = cls(
            run_id=job.id,
            task=job.task,
            queue=job.queue,
            attempt=job.attempt,
            labels=labels,
            digest=digest,
            as_of_us=job.as_of_us,
        )
        if job.timeout_ms is not None:
            ctx.deadline = time.monotonic() + job.timeout_ms / 1000
        ctx.traceparent = job.traceparent
        ctx._ask_client = ask_client
        ctx._slot = job.slot
        return ctx

    @cached_property
    def _digest(self) -> bytes:
        digest, labels = self._given
        return run_digest(self.run_id, labels) if digest is None else digest

    @property
    def seed(self) -> int:
        """A number of 53 bits: the same in every attempt and every replay of this run.

        With `seed="spec"` it is the same in every run of this spec.
        """
        return seed_of(self._digest)

    @property
    def random(self) -> Random:
        """A generator seeded with `seed`, one per attempt; inside a step, one per step."""
        step = current_step()
        if step not in self._randoms:
            self._randoms[step] = seeded(self._digest_in(step))
        return self._randoms[step]

    def _digest_in(self, place: str) -> bytes:
        return place_digest(self._digest, place) if place else self._digest

    def now(self) -> datetime:
        """When the run was accepted, in UTC; in a replay, when the run it repeats was.

        It is the same moment in every attempt.
        """
        return _EPOCH + timedelta(microseconds=self._as_of_us)

    def uuid(self) -> UUID:
        """The next of a sequence of UUIDs that belongs to the run; each attempt starts it again.

        With `seed="spec"` the sequence is the same in every run of this spec.
        """
        step = current_step()
        self._uuids[step] += 1
        return UUID(int=uuid_bits(self._digest_in(step), self._uuids[step] - 1))

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the timeout ends the attempt, or None when there is none."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)

    def progress(
        self, done: float, total: float | None = None, message: str = "", **data: Any
    ) -> None:
        """Report progress: `done` of `total`, or per cent without a total.

        It may include a message of up to 500 characters and a little JSON. Call it as often as you
        like, in any task, async or not: it never waits. The latest report is written about three
        times a second, the last one before the attempt ends. Without a connection to the worker,
        the report is only validated.
        """
        self.reported = report_of(done, total, message, data)
        if self._ask_client is None or self._ask_client.replay is not None:
            return
        if self.reports is None:
            # Most tasks never report; their hands need not import this.
            from byrote.executors.runtime.progress import AttemptProgress  # noqa: PLC0415

            who = {"run": self.run_id, "attempt": self.attempt}
            self.reports = AttemptProgress(self._ask_client, self._slot, who)
        self.reports.put(self.reported)

    def artifact(
        self, name: str, data: bytes | Path, media_type: str = "application/octet-stream"
    ) -> "Artifact":
        """Store bytes or a file with the run under a name; durable when this returns."""
        return self._keeper().keep(name, data, media_type)

    async def aartifact(
        self, name: str, data: bytes | Path, media_type: str = "application/octet-stream"
    ) -> "Artifact":
        """Store bytes or a file with the run under a name; durable when this returns."""
        return await self._keeper().akeep(name, data, media_type)

    def _keeper(self) -> "ArtifactWriter":
        # Most tasks never store anything; their hands need not import this.
        from byrote.executors.runtime.artifacts import ArtifactWriter  # noqa: PLC0415

        return ArtifactWriter(self._ask_client, self._slot, (self.run_id, self.attempt))

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines carry the run's id, attempt, task and queue."""
        fields = {
            "run": self.run_id,
            "attempt": self.attempt,
            "task": self.task,
            "queue": self.queue,
        }
        return _RunLogger(logging.getLogger(f"byrote.task.{self.task}"), fields)

    # -- Durable steps ---------------------------------------------------------------------------

    @cached_property
    def _ledger(self) -> StepSource:
        ask_client = self._open_ask_client()
        cls = Ledger if ask_client.replay is None else RecordedLedger
        return cls(ask_client, self._slot, (self.run_id, self.attempt), self.root)

    @property
    def replaying(self) -> bool:
        """Whether this attempt only verifies an earlier run: it must not notify anyone."""
        return self._ask_client is not None and self._ask_client.replay is not None

    @property
    def unsettled(self) -> StepSource | None:
        """The ledger whose end a task must have reached when it returns, if there may be one.

        The ledger of a first attempt has only the entries it wrote itself.
        """
        if self._ask_client is None or (self.attempt == 1 and self._ask_client.replay is None):
            return None
        return self._ledger

    @property
    def opened(self) -> StepSource | None:
        """The ledger, if the task has used it: errors it caught are written before it ends."""
        return self.__dict__.get("_ledger")

    def _open_ask_client(self) -> AskClient:
        if self._ask_client is None:
            raise BadOption(
                "Durable steps need a worker that can be asked; this attempt is a command in a "
                "container without descriptors, or no attempt at all."
            )
        return self._ask_client

    def step[R](
        self,
        name: str,
        function: Callable[..., R],
        /,
        *args: Any,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> R:
        """Call a function and store its result; a later attempt gets the result without a call.

        An error that the task catches is stored too, and a later attempt raises it again. With
        `retry`, the function is called again before it has failed.
        """
        call = partial(function, *args, **kwargs)
        return SyncSteps(self._ledger).step(name, call, args_hash(args, kwargs), retry)  # type: ignore[no-any-return]

    @overload
    async def astep[R](
        self,
        name: str,
        function: Callable[..., Awaitable[R]],
        /,
        *args: Any,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> R: ...

    @overload
    async def astep[R](
        self,
        name: str,
        function: Callable[..., R],
        /,
        *args: Any,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> R: ...

    async def astep(
        self, name: str, function: Any, /, *args: Any, retry: Retry | None = None, **kwargs: Any
    ) -> Any:
        """The same as `step`, in an async task; the function may be async or not."""
        call = partial(function, *args, **kwargs)
        return await AsyncSteps(self._ledger).step(name, call, args_hash(args, kwargs), retry)

    def sleep(self, length: DurationLike) -> None:
        """End this attempt, and continue after `length` in another one.

        The run occupies no slot meanwhile, and workers may be restarted.
        """
        SyncSteps(self._ledger).wait(SLEEP, SLEEP, length)

    async def asleep(self, length: DurationLike) -> None:
        """The same as `sleep`, in an async task."""
        await AsyncSteps(self._ledger).wait(SLEEP, SLEEP, length)

    def wait_for(
        self, event: str, *, timeout: DurationLike | None = None, default: Any = _RAISE
    ) -> Any:
        """Wait for a signal without occupying a slot, and return its payload.

        After `timeout`, returns the default, or raises WaitTimeout if there is none.
        """
        return _received(event, SyncSteps(self._ledger).wait(EVENT, event, timeout), default)

    async def await_for(
        self,
        event: str,
        *,
        timeout: DurationLike | None = None,  # noqa: ASYNC109 -- kept by the database, for days.
        default: Any = _RAISE,
    ) -> Any:
        """The same as `wait_for`, in an async task."""
        return _received(event, await AsyncSteps(self._ledger).wait(EVENT, event, timeout), default)

    def once(self, key: str, connection: Any) -> AbstractContextManager[bool]:
        """Do something in the same database once, however often the run is attempted.

        `with ctx.once("charge", connection) as first:` is a transaction on the task's own psycopg
        connection, or a savepoint in its open one; `first` is False when it was committed before.
        """
        check_name(key)
        ask_client = self._open_ask_client()
        if ask_client.replay is not None:
            who = {"run": self.run_id, "attempt": self.attempt, "key": key}
            return recite_once(
                lambda: ask_client.ask(self._slot, MARKED, who), self._ledger, key, connection
            )
        return do_once(ask_client.once, (self.run_id, key), connection, self.opened)

    def aonce(self, key: str, connection: Any) -> AbstractAsyncContextManager[bool]:
        """As `once`, with an async connection: `async with ctx.aonce(…) as first:`."""
        check_name(key)
        ask_client = self._open_ask_client()
        if ask_client.replay is not None:
            who = {"run": self.run_id, "attempt": self.attempt, "key": key}
            return arecite_once(
                lambda: ask_client.aask(self._slot, MARKED, who), self._ledger, key, connection
            )
        return ado_once(ask_client.once, (self.run_id, key), connection, self.opened)


def _without_seed(labels: Mapping[str, str]) -> Mapping[str, str]:
    # The label is Byrote's own: a replay must see the labels that its original saw.
    return {name: labels[name] for name in labels if name != SEED_LABEL}


def _received(event: str, text: str | None, default: Any) -> Any:
    if text is not None:
        return unpack(text)
    if default is _RAISE:
        raise WaitTimeout(f"No signal {event!r} came in time.")
    return default


class _RunLogger(logging.LoggerAdapter[logging.Logger]):
    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[object, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {"byrote": self.extra, **kwargs.get("extra", {})}}
