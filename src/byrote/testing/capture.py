# SPDX-License-Identifier: MIT
"""Records the calls of `enqueue` instead of sending them: no database is needed.

The app's own methods are shadowed while the block runs, so that calls in other threads, such as
those of a web framework's test client, are captured too.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Never
from weakref import WeakKeyDictionary

from byrote.assembly.app import App
from byrote.assembly.handles import RunHandle, withheld_runs
from byrote.core.errors import ByroteError
from byrote.core.json.codec import unpack
from byrote.core.replay.withholding import Withholding
from byrote.core.spec import Spec
from byrote.testing.enqueued import CAPTURED, EnqueuedCall
from byrote.testing.shadowing import shadowed

CALLS_MAX = 100_000
"""Captured calls of one block; one more raises, because tasks seem to be enqueued endlessly."""


class OnlyCaptured(ByroteError):
    """A test asked a database for runs that it only captured."""

    code = "only_captured"


class _Capture:
    def __init__(self, app: App) -> None:
        self.calls: list[EnqueuedCall] = []
        self._app = app
        self._withheld = Withholding("captured")
        outer = getattr(vars(app).get("enqueue"), "__self__", None)
        self._outer = outer if isinstance(outer, _Capture) else None
        """The capture of a block around this one, which collects these calls too."""

    def enqueue(self, spec: Spec, *, connection: Any = None) -> RunHandle[Any]:
        """Check the spec as the app does, and record it."""
        del connection
        if len(self.calls) >= CALLS_MAX:
            raise RuntimeError(f"More than {CALLS_MAX:,} tasks were enqueued in one block.")
        spec = self._app.prepared(spec)
        handle = withheld_runs(self._app, self._withheld, [spec])[0]
        self.note(_call_of(handle.id, spec))
        return handle

    def note(self, call: EnqueuedCall) -> None:
        """Record a call here and in the blocks around this one."""
        self.calls.append(call)
        if self._outer is not None:
            self._outer.note(call)

    async def aenqueue(self, spec: Spec, *, connection: Any = None) -> RunHandle[Any]:
        """As `enqueue`."""
        return self.enqueue(spec, connection=connection)

    def enqueue_many(
        self, specs: Iterable[Spec], *, connection: Any = None
    ) -> list[RunHandle[Any]]:
        """As `enqueue`, for each."""
        return [self.enqueue(spec, connection=connection) for spec in specs]

    async def aenqueue_many(
        self, specs: Iterable[Spec], *, connection: Any = None
    ) -> list[RunHandle[Any]]:
        """As `enqueue`, for each."""
        return self.enqueue_many(specs, connection=connection)


class _NoStore:
    """In place of an app's stores: a captured run has no row to read or change."""

    def __getattr__(self, name: str) -> Never:
        raise OnlyCaptured(
            "Inside captured_tasks() nothing is sent to a database, so runs have no status and no "
            "result; use run_tasks() to execute them."
        )


@contextmanager
def captured_tasks(app: App) -> Iterator[list[EnqueuedCall]]:
    """Yield a list that collects all calls enqueued meanwhile; none of them is sent."""
    capture = _Capture(app)
    methods = ("enqueue", "aenqueue", "enqueue_many", "aenqueue_many")
    names = {name: getattr(capture, name) for name in methods}
    before = CAPTURED.get(app)
    CAPTURED[app] = capture.calls
    try:
        with shadowed(app, **names, store=_NoStore(), astore=_NoStore()):
            yield capture.calls
    finally:
        _restore(CAPTURED, app, before)


def _restore(
    captured: WeakKeyDictionary[App, list[EnqueuedCall]],
    app: App,
    before: list[EnqueuedCall] | None,
) -> None:
    if before is None:
        del captured[app]
    else:
        captured[app] = before


def _call_of(run_id: str, spec: Spec) -> EnqueuedCall:
    said: Mapping[str, Any] = unpack(spec.text)
    return EnqueuedCall(
        id=run_id,
        task=spec.task,
        version=spec.version,
        args=said["args"],
        kwargs=said["kwargs"],
        queue=spec.delivery.queue,
        priority=spec.delivery.priority,
        run_after=spec.delivery.run_after,
        labels=dict(spec.delivery.labels or {}),
    )
