# SPDX-License-Identifier: MIT
"""The worker of a service's user: the same runtime as on the database, on leases over HTTP."""

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypedDict, Unpack

import msgspec

from byrote.assembly.clock import monotonic, now
from byrote.assembly.executors import build_executor, hands_of, log_form, worker_options
from byrote.assembly.identity import jitter, new_token, worker_id
from byrote.assembly.settings import Settings, resolve
from byrote.assembly.signals import signals_to
from byrote.core.duration import DurationLike
from byrote.core.errors import BadOption
from byrote.core.events import Event
from byrote.core.ports.executor import Asks, Emit
from byrote.core.ports.replies import Remainder
from byrote.observe.logs import LogWriter
from byrote.sdk.artifact_upload import service_answers
from byrote.sdk.handlers import Handlers
from byrote.sdk.store import ServiceStore
from byrote.sdk.transport.address import ServiceAddress
from byrote.worker.context import WorkerContext
from byrote.worker.start_order import OrderedStart
from byrote.worker.worker import Worker as Supervisor

BUFFER_S = 0.25
"""Seconds of work to buffer: a claim over HTTP takes longer than one over a socket."""


class SdkWorkerOptions(TypedDict, total=False):
    """Options of a worker; absent ones come from BYROTE_* and the settings files."""

    queues: str | Sequence[str]
    """`mail=3,default`: queues and their weights; absent: `default`."""
    hands: int
    """Child processes; absent: one per core."""
    concurrency: int
    """Async tasks at once, over all hands."""
    threads: int
    """Sync tasks at once in each hand."""
    lease: DurationLike
    """How long the worker owns a run without renewing its lease."""
    grace: DurationLike
    """How long a stop waits for running attempts."""
    poll_interval: DurationLike
    """How often an idle worker looks for runs."""
    executor: str
    """Where tasks execute that do not set it."""
    worker_id: str
    """The name of the worker."""
    max_tasks: int
    """Runs after which a hand is replaced."""
    max_rss: str
    """Memory above which a hand is replaced, such as `512MB`."""
    log_format: str
    """`auto`, `text` or `json`."""
    log_level: str
    """`debug`, `info`, `warning` or `error`."""
    deterministic: bool
    """Seed `random`, and fix hash seed, time zone and locale."""


class Worker:
    """Executes runs that a service leases to it, until it is stopped.

    Handlers are named by `module:name` because child processes import them; a Handlers object is
    taken when it can be found again in its module. Each of `hooks` is given the worker's events in
    batches (`byrote.core.events`), from several threads: count them, log them, send them on.
    """

    def __init__(
        self,
        handlers: str | Handlers,
        url: str | None = None,
        token: str | None = None,
        *,
        hooks: Sequence[Emit] = (),
        drain: bool = False,
        verify: Any = True,
        **options: Unpack[SdkWorkerOptions],
    ) -> None:
        self.settings = resolve({**options}).settings
        self._log = LogWriter(
            sys.stderr, form=log_form(self.settings), level=self.settings.log_level, now=now
        )
        self._hooks = tuple(hooks)
        address = ServiceAddress.find(url, token)
        app = path_of(handlers) if self.settings.executor != "inline" else handlers
        self._supervisor = _supervisor(
            app,
            self.settings,
            lambda: ServiceStore(address, verify=verify),
            emit=self._emit,
            drain=drain,
        )

    def run(self) -> None:
        """Work until stopped; in the main thread SIGTERM and Ctrl-C stop it gracefully."""
        main = threading.current_thread() is threading.main_thread()
        with signals_to(self._supervisor) if main else contextlib.nullcontext():
            self._supervisor.run()

    @property
    def left(self) -> Remainder | None:
        """The runs that a drain left; None before it has ended by itself."""
        return self._supervisor.left

    def stop(self, reason: str = "asked to stop") -> None:
        """Stop claiming, and finish what fits into the grace; a second call releases all runs."""
        self._supervisor.stop(reason)

    @property
    def ready(self) -> bool:
        """Whether the worker is claiming."""
        return self._supervisor.ready

    def _emit(self, events: Sequence[Event]) -> None:
        self._log(events)
        for hook in self._hooks:
            hook(events)


def _supervisor(
    app: Any,
    settings: Settings,
    store: Callable[[], ServiceStore],
    *,
    emit: Emit,
    drain: bool,
) -> Supervisor:
    emit = OrderedStart(emit)
    name = settings.worker_id or worker_id()
    hands = hands_of(settings)
    asks: Asks = SimpleQueue()
    built = build_executor(
        app, settings, name, emit=emit, hands=hands, asks=asks, buffer_s=BUFFER_S
    )
    options = worker_options(settings, name, hands=hands, drain=drain)
    context = WorkerContext(name, monotonic, jitter, new_token, emit)
    answers = service_answers(settings.artifact_max)
    return Supervisor(
        store,
        built.executor,
        options,
        context,
        asks=asks,
        answers=answers,
        on_finished=built.report_finished,
        # Handlers have no delivery options: producers choose them.
        announced=lambda: msgspec.structs.replace(built.app().announced, policies={}),
    )


def path_of(handlers: str | Handlers) -> str:
    """`module:name`, by which a child process finds the handlers."""
    if isinstance(handlers, str):
        return handlers
    for module_name, module in list(sys.modules.items()):
        for name, value in list(vars(module).items()) if module is not None else ():
            if value is handlers:
                return f"{_importable(module_name, module)}:{name}"
    raise BadOption(
        "The handlers are not a variable of a module, so child processes cannot find them; "
        "define them at the top of a module, or use executor='inline'."
    )


def _importable(name: str, module: Any) -> str:
    if name != "__main__":
        return name
    spec = getattr(module, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    path = Path(getattr(module, "__file__", "") or "")
    if path.parent.absolute() != Path.cwd():
        raise BadOption(
            f"Run {path.name} from its own folder, or give the worker 'module:name' of the "
            "handlers: child processes import them."
        )
    return path.stem
