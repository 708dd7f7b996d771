# SPDX-License-Identifier: MIT
"""The options of a run that a client enqueues."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from byrote.core.duration import DurationLike
from byrote.core.policy import Retry


class How(TypedDict, total=False):
    """Options of a run: the keyword arguments of `enqueue` and `new_run`."""

    args: Sequence[Any]
    """Positional arguments, instead of a payload."""
    kwargs: Mapping[str, Any]
    """Arguments by name, instead of a payload."""
    version: int
    """The version of the task; default: 1."""
    queue: str
    """The queue that the run waits in; default: `default`."""
    priority: int
    """-100 to 100, higher first."""
    run_after: datetime | DurationLike | None
    """A moment, or a delay by the database's clock."""
    timeout: DurationLike | None
    """How long one attempt may take; None: no limit."""
    retry: Retry | None
    """Absent: one attempt only."""
    labels: Mapping[str, str] | None
    """Texts to find runs by."""
    traceparent: str | None
    """Absent: that of the current span, if OpenTelemetry is installed."""
    unique_key: str | None
    """While a run of the task with it is unfinished, that run is returned: `created` is False."""
