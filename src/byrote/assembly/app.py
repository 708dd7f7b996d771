# SPDX-License-Identifier: MIT
"""The public App: registers tasks and schedules, and enqueues runs in its database."""

import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Unpack, overload

from byrote.assembly.handles import RunHandle, TaskHandle, TaskMaker, withheld_runs
from byrote.assembly.identity import new_id, new_ids
from byrote.assembly.memo import Memos
from byrote.assembly.operations.methods import Operations
from byrote.assembly.operations.verbs import checked_id
from byrote.core.command import Command, Container, Limits, Payload, command_of
from byrote.core.errors import BadOption, UnknownQueue
from byrote.core.json.codec import PAYLOAD_LARGE
from byrote.core.json.seed import SeedFrom
from byrote.core.memo import memo_keep
from byrote.core.policy import ONCE, Retry
from byrote.core.ports.hooks import OnEnqueue
from byrote.core.replay.verdict import Replayed
from byrote.core.replay.withholding import withholding
from byrote.core.schedule.schedule import Schedule, Timing, make_schedule
from byrote.core.spec import Delivery, Spec, check_options
from byrote.core.task import Registry, Task, make_task, stand_in
from byrote.core.unique import UniqueKey
from byrote.executors.hooks.registered import AppHooks, HookDecorators, check_enqueue_hook
from byrote.executors.runtime.around import surrounded
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.loading import checked_modules
from byrote.store.queries.enqueue import EnqueueResult

if TYPE_CHECKING:
    from byrote.assembly.tasks.group import TaskGroup


class LargePayload(UserWarning):
    """Warning about a payload that is large enough to slow the queue down; pass a reference."""


IDS_AT_ONCE = 1_000
"""Ids that are made at a time for many specs."""
OWN_OPTIONS = ("aliases", "deterministic", "seed", "replay_ignore", "files")
"""Options of a task that are not part of its Delivery."""


class App(HookDecorators, Operations):
    """Tasks and the database of their runs. It connects when it is first needed."""

    def __init__(
        self,
        url: str | None = None,
        *,
        queues: Iterable[str] | None = None,
        schema: str | None = None,
        pool: Any = None,
        pool_size: int | None = None,
        include: Sequence[str] = (),
        enqueue_patience: timedelta | str | float | None = None,
    ) -> None:
        """Describe an app; arguments that are absent come from files and the environment.

        `schema` is the schema of Byrote's tables. `pool` is a ConnectionPool or
        AsyncConnectionPool of psycopg_pool, for calls of its kind; its owner closes it. Without
        one, the app opens up to `pool_size` connections itself. `include`: modules with tasks that
        a worker or command imports when it loads the app.
        """
        super().__init__(
            url, schema=schema, pool=pool, pool_size=pool_size, enqueue_patience=enqueue_patience
        )
        self.registry = Registry()
        self._queues = None if queues is None else frozenset(queues)
        self._memos = Memos()
        self.hooks = AppHooks()
        self.include = checked_modules(include)
        self._schedules: dict[str, Schedule] = {}

    # -- Tasks -----------------------------------------------------------------------------------

    @overload
    def task[**P, R](
        self, function: Callable[Concatenate[Context, P], Awaitable[R]], /
    ) -> TaskHandle[P, R]: ...

    @overload
    def task[**P, R](
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> TaskHandle[P, R]: ...

    @overload
    def task[**P, R](self, function: Callable[P, Awaitable[R]], /) -> TaskHandle[P, R]: ...

    @overload
    def task[**P, R](self, function: Callable[P, R], /) -> TaskHandle[P, R]: ...

    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        version: int = 1,
        queue: str = "default",
        priority: int = 0,
        timeout: timedelta | str | float | None = None,
        retry: Retry | None = None,
        labels: Mapping[str, str] | None = None,
        executor: str | Command | None = None,
        deterministic: bool = True,
        seed: SeedFrom = "run",
        replay_ignore: Sequence[str] = (),
        files: Sequence[str] = (),
        memo: timedelta | str | float | None = None,
        unique_key: UniqueKey | None = None,
        aliases: Sequence[str] | None = None,
    ) -> TaskMaker: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a function a task, identified by its name and version.

        The name is `module.function` unless `name` sets another. `aliases` are other names whose
        runs it executes; default: the function's name alone, unless `name` is set.
        `queue`, `priority`, `timeout`, `retry`, `labels` and `unique_key` apply to all its runs, as
        in `TaskHandle.using`; without `retry`, a run has one attempt. `memo` caches results for
        this long. `executor` is `hand`, `inline`, `command`, `container` or a Command.
        `deterministic=False` leaves `random` unseeded, and `seed="spec"` seeds it from the
        arguments instead of the run. `replay_ignore` lists paths of the result that a verified
        replay does not compare, and `files` lists files that belong to the task's code.
        """
        if function is None:
            return lambda decorated: self._make(decorated, **options)
        return self._make(function)

    def _make(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        version: int = 1,
        retry: Retry | None = None,
        executor: str | Command | None = None,
        memo: timedelta | str | float | None = None,
        unique_key: UniqueKey | None = None,
        **options: Any,
    ) -> TaskHandle[..., Any]:
        own = {name: options.pop(name) for name in OWN_OPTIONS if name in options}
        check_options(options, "name", "version", "executor", "memo", *OWN_OPTIONS)
        policy = Delivery(retry=ONCE if retry is None else retry, **options)
        self._check_queue(policy.queue)
        task = make_task(
            function,
            name=name,
            version=version,
            delivery=policy,
            command=command_of(executor),
            memo=None if memo is None else memo_keep(memo),
            unique_key=unique_key,
            **own,
        )
        handle: TaskHandle[..., Any] = TaskHandle(self, task, policy)
        if unique_key is not None:
            handle = handle.using(unique_key=unique_key)
        self._register(task)
        return handle

    def _register(self, task: Task) -> None:
        self._memos.add(task)
        self.registry.add(task)
        if self.hooks.around:
            self.registry.replace(surrounded(task, self.hooks.around))

    def add(self, group: "TaskGroup") -> None:
        """Add the tasks of a group, also those that it defines later; they can be enqueued then."""
        group.join(self, self._adopt)

    def _adopt(self, task: Task) -> None:
        self._check_queue(task.delivery.queue)
        self._register(task)

    def on_enqueue[F: OnEnqueue](self, hook: F) -> F:
        """Call `hook(spec)` before a spec is enqueued by this app.

        It may return a changed spec, such as `spec.using(labels={…})`, or raise to refuse it.
        """
        check_enqueue_hook(hook)
        self.hooks.enqueue.append(hook)
        return hook

    def command(
        self,
        name: str,
        argv: Sequence[str],
        *,
        payload: Payload | None = None,
        env: Sequence[str] = (),
        cwd: str | None = None,
        limits: Limits | None = None,
        container: Container | None = None,
        **options: Any,
    ) -> TaskHandle[..., Any]:
        """Make a program in any language a task; further options are those of `task`."""
        if isinstance(argv, str) or not argv:
            raise BadOption(f"A command is a list: a program and its arguments, not {argv!r}.")
        command = Command(
            argv=argv,
            payload=payload,
            env=env,
            cwd=cwd,
            limits=limits or Limits(),
            container=container,
        )
        return self._make(stand_in(name, command), name=name, executor=command, **options)

    def _check_queue(self, queue: str) -> None:
        if self._queues is not None and queue not in self._queues:
            raise UnknownQueue(queue, list(self._queues))

    def schedule(self, name: str, spec: Spec, **timing: Unpack[Timing]) -> Schedule:
        """Run a spec periodically; the app's workers store the schedule when they start.

        Give `cron` (in the time `zone`), `every` or `at`. No run starts while an earlier one is
        unfinished, unless `overlap`. Of ticks missed without a worker, `catch_up` runs "one", "all"
        or "none"; `jitter` delays each run by a random time up to this duration.
        """
        self._check(spec)
        made = make_schedule(name, spec, **timing)
        if self._schedules.setdefault(name, made) != made:
            raise BadOption(f"The schedule {name!r} is defined twice; rename one of them.")
        return made

    @property
    def schedules(self) -> list[Schedule]:
        """The schedules that this app defines."""
        return list(self._schedules.values())

    # -- Enqueue ---------------------------------------------------------------------------------

    def enqueue(self, spec: Spec, *, connection: Any = None) -> RunHandle[Any]:
        """Enqueue one spec; with `connection`, as part of its transaction.

        The connection may be of psycopg, psycopg 2, SQLAlchemy (also its sessions) or peewee.
        """
        spec = self.prepared(spec)
        if (held := withholding()) is not None:
            return withheld_runs(self, held, [spec])[0]
        run_id, codes = new_id(), self._memos.codes
        if connection is None:
            return self._accepted(run_id, self.store.accept([(run_id, spec)], codes))
        from byrote.store import bulk  # noqa: PLC0415 -- see `operations/database.py`.

        made = bulk.accept_on(connection, [(run_id, spec)], codes, self.settings.schema)
        return self._accepted(run_id, made)

    async def aenqueue(self, spec: Spec, *, connection: Any = None) -> RunHandle[Any]:
        """Enqueue one spec; with `connection`, as part of its transaction.

        The connection may be of async psycopg, asyncpg or async SQLAlchemy (also its sessions).
        """
        spec = self.prepared(spec)
        if (held := withholding()) is not None:
            return withheld_runs(self, held, [spec])[0]
        run_id, codes = new_id(), self._memos.codes
        if connection is None:
            return self._accepted(run_id, await self.astore.accept([(run_id, spec)], codes))
        from byrote.store import bulk  # noqa: PLC0415 -- see `operations/database.py`.

        made = await bulk.aaccept_on(connection, [(run_id, spec)], codes, self.settings.schema)
        return self._accepted(run_id, made)

    def _accepted(self, run_id: str, enqueued: EnqueueResult) -> RunHandle[Any]:
        return RunHandle(self, enqueued.instead.get(run_id, run_id), created=not enqueued.instead)

    def enqueue_many(
        self, specs: Iterable[Spec], *, connection: Any = None
    ) -> list[RunHandle[Any]]:
        """Enqueue many specs, all or none; a generator is encoded while the server inserts."""
        if (held := withholding()) is not None:
            return withheld_runs(self, held, map(self.prepared, specs))
        from byrote.store import bulk  # noqa: PLC0415 -- see `operations/database.py`.

        handles: list[RunHandle[Any]] = []
        statements = bulk.batches(self._numbered(specs, handles), self._memos.codes)
        if connection is not None:
            instead = bulk.enqueue_all_on(connection, statements, self.settings.schema)
            return _with_holders(handles, instead)
        return _with_holders(handles, bulk.send_all(self.store, statements))

    async def aenqueue_many(
        self, specs: Iterable[Spec], *, connection: Any = None
    ) -> list[RunHandle[Any]]:
        """Enqueue many specs, all or none."""
        if (held := withholding()) is not None:
            return withheld_runs(self, held, map(self.prepared, specs))
        from byrote.store import bulk  # noqa: PLC0415 -- see `operations/database.py`.

        handles: list[RunHandle[Any]] = []
        statements = list(bulk.batches(self._numbered(specs, handles), self._memos.codes))
        if connection is not None:
            instead = await bulk.aenqueue_all_on(connection, statements, self.settings.schema)
            return _with_holders(handles, instead)
        return _with_holders(handles, await bulk.asend_all(self.astore, statements))

    def _numbered(
        self, specs: Iterable[Spec], handles: list[RunHandle[Any]]
    ) -> Iterable[tuple[str, Spec]]:
        ids: list[str] = []
        for spec in specs:
            sent = self.prepared(spec)
            if not ids:
                ids = new_ids(IDS_AT_ONCE)[::-1]
            run_id = ids.pop()
            handles.append(RunHandle(self, run_id, created=True))
            yield run_id, sent

    def prepared(self, spec: Spec) -> Spec:
        """Return the spec as it is enqueued, after the `on_enqueue` hooks and the checks."""
        if self.hooks.enqueue:
            spec = self.hooks.enqueued(spec)
        self._check(spec)
        return spec

    def _check(self, spec: Spec) -> None:
        if self._queues is not None:
            self._check_queue(spec.delivery.queue)
        if len(spec.text) > PAYLOAD_LARGE:
            warnings.warn(
                f"A spec of {spec.task} has {len(spec.text):,} characters. Store large data "
                "elsewhere and send a reference to it.",
                LargePayload,
                stacklevel=5,
            )

    # -- Runs ------------------------------------------------------------------------------------

    def run(self, run_id: str) -> RunHandle[Any]:
        """Return a handle on a run; sends no query. Raises RunNotFound if it cannot be an id."""
        return RunHandle(self, checked_id(run_id))

    # -- Replay ----------------------------------------------------------------------------------

    @overload
    def replay(
        self,
        which: str,
        /,
        *,
        live_steps: bool = False,
        ignore: Sequence[str] = (),
        hide_values: bool = False,
    ) -> Replayed: ...

    @overload
    def replay(
        self,
        which: None = None,
        /,
        *,
        task: str,
        last: int | None = None,
        since: datetime | timedelta | str | None = None,
        failed: bool = False,
        version: int | None = None,
        labels: Mapping[str, str] | None = None,
        jobs: int = 1,
        live_steps: bool = False,
        ignore: Sequence[str] = (),
        hide_values: bool = False,
    ) -> list[Replayed]: ...

    def replay(self, which: str | None = None, /, **options: Any) -> Replayed | list[Replayed]:
        """Execute a run (by id or spec hash), or a task's newest runs, again here, and compare.

        It writes only shadow runs, and does not execute recorded steps again.
        """
        # Lazy: an app that only enqueues must not import a worker.
        from byrote.assembly.replay.session import replay_here  # noqa: PLC0415

        return replay_here(self, which, **options)


def _with_holders(
    handles: list[RunHandle[Any]], instead: Mapping[str, str]
) -> list[RunHandle[Any]]:
    """Point handles whose unique key was taken to the run that holds it; returns all handles."""
    for handle in handles if instead else ():
        if handle.id in instead:
            handle.id, handle.created = instead[handle.id], False
    return handles
