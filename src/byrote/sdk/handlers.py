# SPDX-License-Identifier: MIT
"""The registry of a worker's handlers, by the name and version of the tasks they handle."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Protocol

from byrote.core.errors import BadOption, Fatal
from byrote.core.json.seed import SeedFrom
from byrote.core.ports.app import WithoutReports
from byrote.core.schedule.schedule import Schedule
from byrote.core.spec import Delivery
from byrote.core.task import Registry, make_task
from byrote.executors.hooks.registered import AppHooks, HookDecorators
from byrote.executors.runtime.around import Around, surrounded
from byrote.executors.runtime.context import Context


class Handler(Protocol):
    """An object that handles a kind of task; `handle` may be async."""

    def handle(self, ctx: Context, payload: Any, /) -> Any:
        """Do the work; the returned value is the run's result."""


type Handling = Callable[[Context, Any], Any] | Handler


class Handlers(HookDecorators, WithoutReports):
    """Handlers by task; a worker finds them at `module:name`.

    A handler that returns has succeeded. It raises RetryLater to be tried again, Fatal to send its
    run to the dead letters, Snooze to step aside; whatever else it raises is judged by the run's
    policy. Runs may be executed more than once: handlers must be idempotent.
    """

    url: str | None = None
    schema: str | None = None
    """No database: a worker of the service has none."""
    schedules: Sequence[Schedule] = ()
    """None: schedules are stored in the database."""

    def __init__(self, *, around: Sequence[Around] = ()) -> None:
        self.registry = Registry()
        self.hooks = AppHooks()
        self.hooks.around.extend(around)

    def handle[H: Handling](
        self, task: str, *, version: int = 1, seed: SeedFrom = "run"
    ) -> Callable[[H], H]:
        """Decorate a `handle(ctx, payload)` function, or add an object that has such a method."""

        def add(handler: H) -> H:
            self._add(_handling(handler), name=task, version=version, seed=seed)
            return handler

        return add

    def task[F: Callable[..., Any]](
        self,
        *,
        name: str | None = None,
        version: int = 1,
        seed: SeedFrom = "run",
        aliases: Sequence[str] | None = None,
    ) -> Callable[[F], F]:
        """Decorate a plain function; it is called with the run's args and kwargs.

        `name` and `aliases` are those of `App.task`.
        """

        def add(function: F) -> F:
            self._add(function, name=name, version=version, seed=seed, aliases=aliases)
            return function

        return add

    def _add(self, function: Callable[..., Any], **options: Any) -> None:
        task = make_task(function, delivery=Delivery(), **options)
        self.registry.add(surrounded(task, self.hooks.around) if self.hooks.around else task)


def _handling(handler: Handling) -> Callable[..., Any]:
    """A function of context, args and kwargs that calls the handler with the payload in them."""
    method = getattr(handler, "handle", handler)
    if not callable(method):
        raise BadOption(f"{handler!r} is not a handler: it lacks `handle(ctx, payload)`.")
    called = method if method is not handler else handler

    @wraps(called)
    def call(ctx: Context, /, *args: Any, **kwargs: Any) -> Any:
        return called(ctx, payload_of(args, kwargs))

    @wraps(called)
    async def acall(ctx: Context, /, *args: Any, **kwargs: Any) -> Any:
        return await called(ctx, payload_of(args, kwargs))

    made = acall if inspect.iscoroutinefunction(called) else call
    # The signature is fixed, whatever the handler calls its parameters.
    del made.__wrapped__
    return made


def payload_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The payload of a run: its only argument, or its named arguments together."""
    if len(args) == 1 and not kwargs:
        return args[0]
    if args:
        raise Fatal("This task takes one payload; it was sent several arguments.")
    return dict(kwargs) or None
