# SPDX-License-Identifier: MIT
"""The hooks that an app registers, and the decorators that register them."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from byrote.core.errors import BadOption
from byrote.core.outcome import Fault
from byrote.core.ports.hooks import EndedRun, HookWants, OnEnqueue
from byrote.core.spec import Spec
from byrote.core.task import Registry
from byrote.executors.runtime.around import Around, surrounded
from byrote.executors.runtime.context import Context


class FailedAttempt:
    """An attempt that failed; `on_failure` hooks receive it."""

    __slots__ = ("ctx", "error", "fault", "will_retry")

    def __init__(
        self, ctx: Context, error: BaseException | None, fault: Fault, *, will_retry: bool
    ) -> None:
        self.ctx = ctx
        """Describes the attempt: run id, task, queue, number, labels."""
        self.error = error
        """The exception; None if there is none, as after a timeout or a killed process."""
        self.fault = fault
        """The same as text, as it is stored."""
        self.will_retry = will_retry
        """Whether the run will be attempted again, unless it is cancelled before that."""


type OnFailure = Callable[[FailedAttempt], Awaitable[None] | None]
type OnEnd = Callable[[EndedRun], Awaitable[None] | None]
type OnProcess = Callable[[], Awaitable[None] | None]
"""A hook without parameters, at the start or stop of a hand or a worker."""


class AppHooks:
    """The hooks of one app, each kind in the order of registration."""

    def __init__(self) -> None:
        self.around: list[Around] = []
        self.enqueue: list[OnEnqueue] = []
        self.failure: list[OnFailure] = []
        self.end: list[OnEnd] = []
        self.hand_start: list[OnProcess] = []
        self.hand_stop: list[OnProcess] = []
        self.worker_start: list[OnProcess] = []
        self.worker_stop: list[OnProcess] = []

    @property
    def wants(self) -> HookWants:
        """The messages that these hooks need from a supervisor."""
        return HookWants(
            bool(self.failure), bool(self.end), bool(self.worker_start), bool(self.worker_stop)
        )

    @property
    def observes(self) -> bool:
        """Whether there is a hook that a process of the worker calls, besides `around`."""
        return bool(
            self.failure
            or self.end
            or self.hand_start
            or self.hand_stop
            or self.worker_start
            or self.worker_stop
        )

    def enqueued(self, spec: Spec) -> Spec:
        """Return the spec as the `on_enqueue` hooks leave it."""
        for hook in self.enqueue:
            changed = hook(spec)
            if isinstance(changed, Spec):
                spec = changed
            elif changed is not None:
                raise BadOption(
                    f"The hook {name_of(hook)} of on_enqueue returned {changed!r:.80}; return a "
                    "spec, such as spec.using(labels={…}), or None to keep it."
                )
        return spec


def hooks_of(app: Any) -> AppHooks | None:
    """The hooks of an app; None if it has none that a process of a worker calls."""
    hooks: AppHooks | None = getattr(app, "hooks", None)
    return hooks if hooks is not None and hooks.observes else None


def name_of(hook: Callable[..., Any]) -> str:
    """The name of a hook in messages."""
    return getattr(hook, "__qualname__", None) or repr(hook)


class HookDecorators:
    """Decorators that register hooks; `App` and the SDK's `Handlers` inherit them."""

    registry: Registry
    hooks: AppHooks

    def around[A: Around](self, hook: A) -> A:
        """Enter the context manager that `hook(ctx)` returns around every attempt of every task.

        It is entered in the process that calls the task, and its errors are errors of the attempt.
        The first hook is the outermost. Async tasks also accept async context managers.
        """
        _check(hook, "around")
        self.hooks.around.append(hook)
        if len(self.hooks.around) == 1:
            # Tasks read the list when they are called, so later hooks apply to them too.
            for task in list(self.registry):
                self.registry.replace(surrounded(task, self.hooks.around))
        return hook

    def on_failure[F: OnFailure](self, hook: F) -> F:
        """Call `hook(failed)` after an attempt failed, with its exception; may be async."""
        _check(hook, "on_failure")
        self.hooks.failure.append(hook)
        return hook

    def on_end[F: OnEnd](self, hook: F) -> F:
        """Call `hook(ended)` after the end of a run was stored; may be async."""
        _check(hook, "on_end")
        self.hooks.end.append(hook)
        return hook

    def on_hand_start[F: OnProcess](self, hook: F) -> F:
        """Call `hook()` in every hand before its first task; may be async. An error is fatal."""
        _check(hook, "on_hand_start")
        self.hooks.hand_start.append(hook)
        return hook

    def on_hand_stop[F: OnProcess](self, hook: F) -> F:
        """Call `hook()` in every hand after its last task, the last hook first; may be async."""
        _check(hook, "on_hand_stop")
        self.hooks.hand_stop.append(hook)
        return hook

    def on_worker_start[F: OnProcess](self, hook: F) -> F:
        """Call `hook()` in one hand of each worker before its first run; may be async.

        An error ends the worker.
        """
        _check(hook, "on_worker_start")
        self.hooks.worker_start.append(hook)
        return hook

    def on_worker_stop[F: OnProcess](self, hook: F) -> F:
        """Call `hook()` in one hand of each worker after its last run; may be async."""
        _check(hook, "on_worker_stop")
        self.hooks.worker_stop.append(hook)
        return hook


def check_enqueue_hook(hook: OnEnqueue) -> None:
    """Raise BadOption for an `on_enqueue` hook that `enqueue` could not call."""
    _check(hook, "on_enqueue")
    if inspect.iscoroutinefunction(hook):
        raise BadOption(
            f"The hook {name_of(hook)} of on_enqueue is async, but enqueue() cannot await it; "
            "define it with `def`."
        )


def _check(hook: object, where: str) -> None:
    if not callable(hook):
        raise BadOption(
            f"{where} takes a function, not {hook!r:.80}; write @app.{where} above a function."
        )
