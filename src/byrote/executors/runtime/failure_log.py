# SPDX-License-Identifier: MIT
"""Logs failed attempts through `logging`, in the process where the exception is alive.

Error trackers such as Sentry attach to `logging`, so they receive the exception itself. An attempt
that a supervisor has to end (a crash, a timeout of a sync task) has no live exception; the worker's
own line, `Retried` or `Failed`, is then the only one.
"""

import logging
import traceback
from collections.abc import Callable

from byrote.executors.runtime.call import theirs
from byrote.executors.runtime.job import Job, RaisedResult

_log = logging.getLogger("byrote.task")

type OnRaised = Callable[[Job, RaisedResult, BaseException | None], None]
"""Takes a failed attempt, and its exception if it raised one; called before it is reported."""


def both(log: OnRaised, hooks: OnRaised | None) -> OnRaised:
    """Return what passes a failed attempt to the log and, if there are any, to the hooks."""
    if hooks is None:
        return log

    def pass_on(job: Job, result: RaisedResult, error: BaseException | None) -> None:
        log(job, result, error)
        hooks(job, result, error)

    return pass_on


class FailureLog:
    """Logs each failed attempt once: a warning if a retry follows, an error if the run ends."""

    def __init__(self, *, tracebacks: bool, ends: bool = True) -> None:
        self._tracebacks = tracebacks
        """Whether to log messages and tracebacks, or only the types of exceptions."""
        self._ends = ends
        """Whether to log the ends of runs; not if the app itself does."""

    def __call__(self, job: Job, result: RaisedResult, error: BaseException | None) -> None:
        """Log a failed attempt; `error` is its exception, if it raised one."""
        final = result.final or job.last
        level = logging.ERROR if final else logging.WARNING
        if (final and not self._ends) or not _log.isEnabledFor(level):
            return
        fault, trace = result.fault, None
        what = fault.type
        if self._tracebacks:
            what = f"{fault.type}: {fault.message}"
            if error is not None:
                trace = (type(error), error, theirs(error.__traceback__))
        fields = {"run": job.id, "task": job.task, "attempt": job.attempt, "queue": job.queue}
        verb = "failed" if final else "will be retried"
        try:
            _log.log(level, "%s %s: %s", job.task, verb, what, exc_info=trace, extra=fields)
        except Exception:  # noqa: BLE001 -- a filter of the project may raise anything.
            traceback.print_exc()
