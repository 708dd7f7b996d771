# SPDX-License-Identifier: MIT
"""The `ctx` of a task that a test calls directly: everything is kept in memory.

def test_a_charge_is_made_once():
    ctx = context(signals={"paid": {"cents": 300}})
    assert charge.function(ctx, 3) == "paid 300"
    assert ctx.steps == ["reserve", "charge"]
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec

from byrote.artifacts.artifact import Artifact
from byrote.artifacts.content_store import pieces
from byrote.core.artifact import SIZE_MAX, ArtifactEntry, ArtifactRefused, check_artifact, too_large
from byrote.core.duration import DurationLike, duration, micros
from byrote.core.errors import BadOption
from byrote.core.json.codec import pack
from byrote.core.progress import ProgressReport, report_of
from byrote.executors.runtime.asks import AskClient, AskResult
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.job import Job
from byrote.executors.runtime.steps.call import EVENT, SLEEP, STEP
from byrote.testing.asks import DirectAsks

RUN_ID = "00000000-0000-7000-8000-000000000001"
"""The run that a context belongs to, unless the test names another: it decides the random seed."""
NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryContext(Context):
    """A `ctx` that needs no worker, and what the task did with it."""

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        self.steps: list[str] = []
        """Names of the steps that returned, in order."""
        self.sleeps: list[timedelta] = []
        """Lengths of the sleeps, which take no time."""
        self.artifacts: dict[str, Artifact] = {}
        """The stored artifacts by name."""
        self.progress_reports: list[ProgressReport] = []
        """All progress reports, the last one last."""

    def progress(
        self, done: float, total: float | None = None, message: str = "", **data: Any
    ) -> None:
        """Record a progress report; validated as in a worker."""
        self.reported = report_of(done, total, message, data)
        self.progress_reports.append(self.reported)

    def artifact(
        self, name: str, data: bytes | Path, media_type: str = "application/octet-stream"
    ) -> Artifact:
        """Keep bytes or the content of a file in memory."""
        check_artifact(name, media_type)
        if not isinstance(data, bytes | bytearray | memoryview | Path):
            raise ArtifactRefused(
                "An artifact is bytes or the path of a file, not "
                f"{type(data).__name__}; encode text first."
            )
        content = data.read_bytes() if isinstance(data, Path) else bytes(data)
        if len(content) > SIZE_MAX:
            raise too_large(SIZE_MAX)
        digest = hashlib.sha256(content).hexdigest()
        if name in self.artifacts and self.artifacts[name].hash != digest:
            raise ArtifactRefused(
                f"This attempt has stored another content as {name!r}; choose another name."
            )
        who = (self.run_id, self.attempt, name)
        entry = ArtifactEntry(*who, digest, len(content), media_type, "memory", self.now())
        self.artifacts[name] = Artifact(entry, lambda: pieces(content))
        return self.artifacts[name]

    async def aartifact(
        self, name: str, data: bytes | Path, media_type: str = "application/octet-stream"
    ) -> Artifact:
        """As `artifact`."""
        return self.artifact(name, data, media_type)


class _MemoryLedger:
    """Answers the asks of one attempt."""

    def __init__(self, signals: Mapping[str, Any]) -> None:
        self._signals = {name: pack(payload).text for name, payload in signals.items()}
        self.ctx: MemoryContext | None = None

    def answer(self, verb: str, payload: Mapping[str, Any]) -> AskResult:
        assert self.ctx is not None  # noqa: S101 -- set before the task begins.
        if verb == "load":
            return AskResult(True, [])
        kind, name, text = payload["kind"], payload["name"], payload.get("result")
        match kind:
            case str() if kind == STEP:
                self.ctx.steps.append(name)
            case str() if kind == SLEEP:
                self.ctx.sleeps.append(timedelta(microseconds=payload["delay_us"]))
            case str() if kind == EVENT:
                text = self._signal(name, payload["delay_us"])
        return AskResult(True, [False, text, None])

    def _signal(self, name: str, delay_us: int | None) -> str | None:
        """The payload of a signal; None if the wait has timed out."""
        if name not in self._signals and delay_us is None:
            raise BadOption(
                f"The task waits for the signal {name!r} without a timeout, and the test sends "
                f"none; write context(signals={{{name!r}: payload}})."
            )
        return self._signals.get(name)


def context(
    *,
    run_id: str = RUN_ID,
    task: str = "test",
    queue: str = "default",
    attempt: int = 1,
    labels: Mapping[str, str] | None = None,
    timeout: DurationLike | None = None,
    now: datetime = NOW,
    signals: Mapping[str, Any] | None = None,
) -> MemoryContext:
    """Return a `ctx` with which a test calls a task's function directly, without a database.

    Steps are executed, sleeps end at once, `wait_for` returns the payload in `signals` or times
    out. `run_id` is the seed of `ctx.random` and `ctx.uuid()`, `now` is `ctx.now()`.
    """
    ledger = _MemoryLedger(signals or {})
    asks = DirectAsks(ledger.answer, strict=False)
    job = Job(
        slot=0,
        id=run_id,
        task=task,
        version=1,
        spec_json="",
        attempt=attempt,
        timeout_ms=None if timeout is None else micros(duration(timeout)) // 1000,
        queue=queue,
        labels_json=msgspec.json.encode(labels).decode() if labels else None,
        traceparent=None,
        deadline=0.0,
        spec_hash=b"",
        as_of_us=micros(now - _EPOCH),
    )
    ctx = MemoryContext.of(job, cast("AskClient", asks))
    assert isinstance(ctx, MemoryContext)  # noqa: S101 -- `of` is declared to return the base.
    ledger.ctx = ctx
    return ctx
