# SPDX-License-Identifier: MIT
"""What a task may know about the attempt it is in."""

import logging
import time
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import msgspec


class Context:
    """The attempt a task is in; a first parameter named `ctx` receives it."""

    def __init__(
        self, *, run_id: str, task: str, queue: str, attempt: int, labels: Mapping[str, str]
    ) -> None:
        self.run_id = run_id
        """The run's id: the same for every attempt, so a good idempotency key."""
        self.task = task
        self.queue = queue
        self.attempt = attempt
        """1 for the first try."""
        self.labels = labels
        self.deadline: float | None = None
        """Monotonic time (`time.monotonic()`) at which the attempt's timeout strikes, or None."""
        self.traceparent: str | None = None

    @classmethod
    def of(cls, job: Sequence[Any]) -> "Context":
        """The context of a job as it came over the wire."""
        labels = msgspec.json.decode(job[8]) if job[8] else {}
        ctx = cls(run_id=job[1], task=job[2], queue=job[7], attempt=job[5], labels=labels)
        if job[6] is not None:
            ctx.deadline = time.monotonic() + job[6] / 1000
        ctx.traceparent = job[9]
        return ctx

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the timeout strikes, or None when there is none."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)

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


class _RunLogger(logging.LoggerAdapter[logging.Logger]):
    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[object, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {"byrote": self.extra, **kwargs.get("extra", {})}}
