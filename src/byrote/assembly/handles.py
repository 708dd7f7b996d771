# SPDX-License-Identifier: MIT
"""Handles for callers: a task to enqueue, and a run to read, wait for or cancel."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Protocol, Unpack, overload

import msgspec

from byrote.artifacts.artifact import Artifact
from byrote.assembly.artifacts import artifact_of, artifacts_of, entries_of, named, readable
from byrote.assembly.clock import monotonic
from byrote.core.duration import duration
from byrote.core.errors import ResultTimeout, RunFailed, RunNotFound
from byrote.core.json.codec import unpack
from byrote.core.ports.script import arun_script
from byrote.core.replay.withholding import Withholding, withholding
from byrote.core.run import Run
from byrote.core.spec import Delivery, DeliveryOptions, Spec, check_options, describe
from byrote.core.state import FINAL, Status
from byrote.core.task import Task
from byrote.core.text.names import bare_name
from byrote.core.typed.converter import Converter
from byrote.core.unique import CallKey, call_key
from byrote.core.unserved import Standing
from byrote.executors.runtime.context import Context
from byrote.store import queries
from byrote.store.queries.queues import why_waiting
from byrote.store.rows import RunOutcome

if TYPE_CHECKING:
    from byrote.assembly.app import App

LOOK_FIRST_S = 0.002
LOOK_MAX_S = 0.25


class TaskHandle[**P, R]:
    """A task of an app. Calling it calls the function; `enqueue` lets a worker call it."""

    def __init__(
        self,
        app: "App",
        task: Task,
        delivery: Delivery,
        connection: Any = None,
        *,
        key: CallKey | None = None,
    ) -> None:
        self._app = app
        self._task = task
        self._delivery = delivery
        self._connection = connection
        self._key = key
        self.__name__ = bare_name(task.name)
        self.__doc__ = task.function.__doc__

    @property
    def name(self) -> str:
        """The name that identifies the task."""
        return self._task.name

    @property
    def version(self) -> int:
        """The version that identifies the task."""
        return self._task.version

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return self._task.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function directly, without a queue; a task that takes `ctx` needs one."""
        return self._task.function(*args, **kwargs)

    def using(
        self, *, connection: Any = None, **delivery: Unpack[DeliveryOptions]
    ) -> "TaskHandle[P, R]":
        """Return the same task with other options, or with the caller's connection.

        The handle itself does not change. With `connection`, `enqueue` is part of its transaction.
        """
        check_options(delivery, "connection")
        key = self._key
        if "unique_key" in delivery:
            chosen, key = delivery["unique_key"], None
            if callable(chosen):
                key = call_key(chosen, self._task.signature, self._task.name)
                delivery["unique_key"] = None
        changed = (
            msgspec.structs.replace(self._delivery, **delivery) if delivery else self._delivery
        )
        return TaskHandle(self._app, self._task, changed, connection or self._connection, key=key)

    def spec(self, *args: P.args, **kwargs: P.kwargs) -> Spec:
        """Return the spec of a call without enqueueing it."""
        self._task.check(args, kwargs)
        limit = self._app.settings.payload_limit(self._delivery.queue)
        delivery = self._delivery
        if self._key is not None:
            delivery = msgspec.structs.replace(delivery, unique_key=self._key(args, kwargs))
        task = self._task
        sent: tuple[list[Any], dict[str, Any]] = list(args), kwargs
        if task.arguments is not None:
            sent = task.arguments.dump(args, kwargs)
        return describe(task.name, task.version, *sent, delivery=delivery, limit=limit)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> "RunHandle[R]":
        """Enqueue a call with these arguments, converted to JSON by the task's annotations.

        Raises BadArguments if they do not fit the signature, and BadPayload with the path of a
        value that does not fit its annotation or cannot be sent.
        """
        run = self._app.enqueue(self.spec(*args, **kwargs), connection=self._connection)
        run.converter = self._task.result
        return run

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> "RunHandle[R]":
        """Enqueue a call with these arguments, as `enqueue` does."""
        run = await self._app.aenqueue(self.spec(*args, **kwargs), connection=self._connection)
        run.converter = self._task.result
        return run


class TaskMaker(Protocol):
    """The decorator that `app.task(…)` with options returns; it keeps the function's types."""

    @overload
    def __call__[**P, R](
        self, function: Callable[Concatenate[Context, P], Awaitable[R]], /
    ) -> TaskHandle[P, R]: ...

    @overload
    def __call__[**P, R](
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> TaskHandle[P, R]: ...

    @overload
    def __call__[**P, R](self, function: Callable[P, Awaitable[R]], /) -> TaskHandle[P, R]: ...

    @overload
    def __call__[**P, R](self, function: Callable[P, R], /) -> TaskHandle[P, R]: ...


class RunHandle[R]:
    """A run by its id; its methods query the database."""

    def __init__(self, app: "App", run_id: str, *, created: bool = False) -> None:
        self._app = app
        self._run: Run | None = None
        self.id = run_id
        """The run's id."""
        self.created = created
        """Whether the call that returned this enqueued the run; False if its key was taken."""
        self.converter: Converter | None = None
        """Converts the result to the task's return type; None: the result is plain JSON."""

    def __repr__(self) -> str:
        return f"RunHandle({self.id!r})"

    def refresh(self) -> Run:
        """Read the run from the database."""
        _check_withheld(self.id)
        return self._update(self._app.store.first(queries.run(self.id)))

    async def arefresh(self) -> Run:
        """Read the run from the database."""
        _check_withheld(self.id)
        return self._update(await self._app.astore.first(queries.run(self.id)))

    def _update(self, run: Run | None) -> Run:
        if run is None:
            raise RunNotFound(self.id)
        self._run = run
        return run

    @property
    def status(self) -> Status:
        """The run's status when it was last read; reads it if it was not read before."""
        return (self._run or self.refresh()).status

    def result(self, timeout: timedelta | str | float | None = None) -> R:
        """Wait for the result; raises RunFailed, or ResultTimeout after `timeout`.

        It has the task's return type if a task's `enqueue` returned this handle; otherwise it is
        plain JSON.
        """
        patience = _Patience(self.id, timeout)
        while True:
            ended = self._app.store.first(queries.outcome(self.id))
            if patience.over(ended):
                return self._converted(patience.value)
            if patience.late:
                raise patience.timeout(self._app.store.all(why_waiting(self.id)))
            time.sleep(patience.pause)

    async def aresult(
        self,
        timeout: timedelta | str | float | None = None,  # noqa: ASYNC109 -- part of the public API.
    ) -> R:
        """Wait for the result; raises RunFailed, or ResultTimeout after `timeout`."""
        patience = _Patience(self.id, timeout)
        while True:
            ended = await self._app.astore.first(queries.outcome(self.id))
            if patience.over(ended):
                return self._converted(patience.value)
            if patience.late:
                raise patience.timeout(await self._app.astore.all(why_waiting(self.id)))
            await asyncio.sleep(patience.pause)

    def _converted(self, value: Any) -> R:
        return value if self.converter is None else self.converter.load(value)  # type: ignore[no-any-return]

    def artifacts(self) -> list[Artifact]:
        """Return the artifacts stored so far, oldest attempt first."""
        return artifacts_of(self._app.store, self.id)

    async def aartifacts(self) -> list[Artifact]:
        """Return the artifacts stored so far; reading the content of one blocks the event loop."""
        entries = await arun_script(entries_of(self.id), self._app.astore.all)
        return readable(self._app.store, entries)

    def artifact(self, name: str) -> Artifact:
        """Return the artifact of this name from the newest attempt; raises UnknownArtifact."""
        return artifact_of(self._app.store, self.id, name)

    async def aartifact(self, name: str) -> Artifact:
        """Return the artifact of this name from the newest attempt; raises UnknownArtifact."""
        return named(await self.aartifacts(), self.id, name)

    def cancel(self) -> bool:
        """Cancel the run; returns False if it had already finished.

        Raises RowLocked if another transaction has locked the run for more than a second.
        """
        return self._app.cancel(self.id)

    async def acancel(self) -> bool:
        """Cancel the run; returns False if it had already finished."""
        return await self._app.acancel(self.id)

    def retry(self) -> bool:
        """Make a dead or waiting run ready now; returns False if it was neither.

        Raises RowLocked if another transaction has locked the run for more than a second.
        """
        return self._app.retry(self.id)

    async def aretry(self) -> bool:
        """Make a dead or waiting run ready now; returns False if it was neither."""
        return await self._app.aretry(self.id)


def _check_withheld(run_id: str) -> None:
    if (held := withholding()) is not None:
        held.check(run_id)


def withheld_runs(app: "App", held: Withholding, specs: Iterable[Spec]) -> list[RunHandle[Any]]:
    """Return handles on runs that a replay does not enqueue."""
    return [RunHandle(app, held.enqueue(spec.task)[0], created=True) for spec in specs]


def note_withheld(call: str, what: str) -> bool:
    """In a replay, count the call as withheld and return True; the caller then skips it."""
    held = withholding()
    if held is not None:
        held.note(call, "a run it enqueued" if what in held.ids else what)
    return held is not None


class _Patience:
    """How long a caller waits for a run, and how often it polls."""

    def __init__(self, run_id: str, timeout: timedelta | str | float | None) -> None:
        _check_withheld(run_id)
        self._run_id = run_id
        self._timeout = None if timeout is None else duration(timeout).total_seconds()
        self._deadline = None if self._timeout is None else monotonic() + self._timeout
        self._look_s = LOOK_FIRST_S
        self.value: Any = None
        self.late = False
        self._status = Status.READY

    def over(self, ended: RunOutcome | None) -> bool:
        if ended is None:
            raise RunNotFound(self._run_id)
        if ended.status is Status.SUCCESSFUL and ended.result_json is not None:
            self.value = unpack(ended.result_json)
            return True
        if ended.status in FINAL:
            raise RunFailed(self._run_id, ended.status, ended.faults)
        self.late = self._deadline is not None and monotonic() >= self._deadline
        self._status = ended.status
        return False

    def timeout(self, stands: Sequence[Standing]) -> ResultTimeout:
        """The error for a run that has not ended in time, with the reason if it is known."""
        text = f"Run {self._run_id} is still {self._status} after {self._timeout:g} s."
        return ResultTimeout(" ".join([text, *(one.why for one in stands if one.why)]))

    @property
    def pause(self) -> float:
        self._look_s = min(self._look_s * 1.5, LOOK_MAX_S)
        if self._deadline is None:
            return self._look_s
        return max(min(self._look_s, self._deadline - monotonic()), 0.0)
