# SPDX-License-Identifier: MIT
"""Reports runs that failed for good to Sentry: `install(app)` after `sentry_sdk.init(…)`.

Each attempt has its own isolation scope. The exception of a failed attempt waits here until its
verdict is stored, so that a run is reported once, and only if it really failed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

from byrote.core.errors import BadOption
from byrote.core.outcome import Fault
from byrote.core.ports.hooks import EndedRun
from byrote.core.state import Status
from byrote.executors.hooks.registered import FailedAttempt, HookDecorators
from byrote.executors.runtime.call import theirs
from byrote.executors.runtime.context import Context

KEPT_MAX = 1_000
"""Exceptions that wait for the verdict on their attempts; for a lost lease none ever arrives."""
FLUSH_S = 5.0
"""How long a process that ends waits for events that were not sent yet."""
LOGGER = "byrote.task"
"""Logs failed attempts as well; its records would be reported a second time."""


class _Kept(NamedTuple):
    error: BaseException
    scope: Any


class SentryReports:
    """The hooks of one app; `install` registers them."""

    def __init__(self, *, retries: bool) -> None:
        self._sdk = import_module("sentry_sdk")
        self._scopes = import_module("sentry_sdk.scope")
        self._retries = retries
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()

    @contextmanager
    def around(self, ctx: Context) -> Iterator[None]:
        """Give the attempt its own scope with tags, and keep its exception."""
        if ctx.replaying:
            yield
            return
        with self._sdk.isolation_scope() as scope:
            scope.clear_breadcrumbs()
            scope.set_transaction_name(ctx.task, source="task")
            scope.set_tags(_tags(ctx, ctx.attempt))
            try:
                yield
            except BaseException as error:
                self._keep(ctx.run_id, _Kept(error, scope))
                raise

    def _keep(self, run_id: str, kept: _Kept) -> None:
        with self._lock:
            self._kept[run_id] = kept
            if len(self._kept) > KEPT_MAX:
                del self._kept[next(iter(self._kept))]

    def on_failure(self, failed: FailedAttempt) -> None:
        """Report an attempt that will be retried as a warning, if that is wanted."""
        if not failed.will_retry:
            return
        ctx = failed.ctx
        kept = self._taken(ctx.run_id)
        if self._retries:
            self._capture(kept, failed.fault, _tags(ctx, ctx.attempt), "warning")

    def on_end(self, ended: EndedRun) -> None:
        """Report a run that failed for good."""
        kept = self._taken(ended.run_id)
        if ended.status is Status.FAILED and ended.fault is not None:
            self._capture(kept, ended.fault, _tags(ended, ended.attempts), "error")

    def _taken(self, run_id: str) -> _Kept | None:
        with self._lock:
            return self._kept.pop(run_id, None)

    def _capture(self, kept: _Kept | None, fault: Fault, tags: dict[str, str], level: str) -> None:
        if kept is None:
            # Killed, timed out, or executed by another process, which has the exception.
            self._sdk.capture_event(_event(fault, tags, level))
            return
        with self._scopes.use_isolation_scope(kept.scope), self._sdk.new_scope() as scope:
            scope.set_level(level)
            error = kept.error
            # From the task's own first frame on: ours would be part of every grouping.
            self._sdk.capture_exception((type(error), error, theirs(error.__traceback__)))

    def on_hand_stop(self) -> None:
        """Send the events that wait; the process ends without Python's exit handlers."""
        self._sdk.flush(FLUSH_S)


def install(app: HookDecorators, *, retries: bool = False) -> None:
    """Report runs of an app that failed for good to Sentry, once each.

    `retries`: report attempts that will be retried too, as warnings. Raises BadOption if
    `sentry-sdk` is not installed.
    """
    try:
        reports = SentryReports(retries=retries)
        ignore_logger = import_module("sentry_sdk.integrations.logging").ignore_logger
    except ImportError:
        raise BadOption("Reports to Sentry need its SDK: pip install 'byrote[sentry]'.") from None
    ignore_logger(LOGGER)
    app.around(reports.around)
    app.on_failure(reports.on_failure)
    app.on_end(reports.on_end)
    app.on_hand_stop(reports.on_hand_stop)


def _tags(run: Context | EndedRun, attempt: int) -> dict[str, str]:
    tags: dict[str, str] = {
        "byrote.run": run.run_id,
        "byrote.task": run.task,
        "byrote.queue": run.queue,
        "byrote.attempt": str(attempt),
    }
    parts = (run.traceparent or "").split("-")
    if len(parts) == 4:
        tags["byrote.trace"] = parts[1]
    return tags


def _event(fault: Fault, tags: dict[str, str], level: str) -> dict[str, Any]:
    """An event without an exception: what was stored of the failure."""
    module, _, name = fault.type.rpartition(".")
    raised = {"type": name, "value": fault.message, "module": module or None}
    return {
        "level": level,
        "transaction": tags["byrote.task"],
        "exception": {"values": [raised]},
        "tags": tags,
        "extra": {"traceback": fault.traceback, "kind": fault.kind},
        "fingerprint": [tags["byrote.task"], fault.type],
    }
