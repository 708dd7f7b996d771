# SPDX-License-Identifier: MIT
"""Builds the executor of a worker; independent of the store."""

import os
import platform
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from byrote.assembly.clock import monotonic
from byrote.assembly.once import once
from byrote.assembly.settings import Settings, fingerprint
from byrote.core.command import Command, Container
from byrote.core.ports.app import Announced
from byrote.core.ports.executor import Asks, Emit, Executor, ReportStored
from byrote.core.replay.provenance import Provenance, provenance_of
from byrote.core.schedule.schedule import Schedule
from byrote.executors.capacity import BUFFER_S
from byrote.executors.commands.pool import CommandOptions, Commands
from byrote.executors.hands.options import HandOptions
from byrote.executors.hands.pool import Hands
from byrote.executors.hooks.registered import hooks_of
from byrote.executors.inline import Inline
from byrote.executors.routed import RoutedExecutor
from byrote.executors.runtime.asks import ReplayMode
from byrote.executors.runtime.failure_log import FailureLog
from byrote.executors.runtime.loading import (
    announced,
    ignores,
    load_app,
    path_of,
    schedules_of,
)
from byrote.executors.runtime.provenance.environment import measure, memos_of
from byrote.executors.runtime.provenance.git import GitCheckout
from byrote.observe.logs import Format
from byrote.worker.options import WorkerOptions


class DescribeApp(Protocol):
    """Facts about an app, known after its executor has started."""

    @property
    def url(self) -> str | None:
        """The database the app names."""

    @property
    def schema(self) -> str | None:
        """The schema of Byrote's tables that the app names."""

    @property
    def ignores(self) -> Mapping[str, Sequence[str]]:
        """Paths of results that a replay does not compare, by task."""

    @property
    def schedules(self) -> Sequence[Schedule]:
        """The schedules that the app defines."""

    @property
    def announced(self) -> Announced:
        """The queues and aliases of its tasks."""


class AppInfo(NamedTuple):
    """Facts about an app that is loaded in this process."""

    url: str | None
    schema: str | None
    ignores: Mapping[str, Sequence[str]]
    schedules: Sequence[Schedule]
    announced: Announced


class BuiltExecutor(NamedTuple):
    """An executor and the facts about its app."""

    executor: Executor
    app: Callable[[], DescribeApp]
    mute: Callable[[], Collection[str]]
    """Tasks without a steps ledger, because their programs cannot use it."""
    pool: Hands | None = None
    """The hands, if the executor has any."""
    report_finished: ReportStored | None = None
    """Takes attempts whose verdicts were stored, for the app's hooks."""


def build_executor(
    app: Any,
    settings: Settings,
    name: str,
    *,
    emit: Emit,
    hands: int,
    asks: Asks,
    replay: ReplayMode | None = None,
    recorded: Settings | None = None,
    buffer_s: float = BUFFER_S,
) -> BuiltExecutor:
    """Return the executor for the app at `module:name`, or for an app object in this process.

    `replay`: how steps are answered if every run is a replay. `recorded`: the settings to record
    in provenance, if they differ from `settings`. `buffer_s`: seconds of work that hands receive
    in advance.
    """
    facts = about(recorded or settings)
    options = CommandOptions(
        concurrency=hands or os.cpu_count() or 1,
        python=settings.python_path or sys.executable,
        app=app if isinstance(app, str) else path_of(app),
        payload=settings.payload_mode,
        replay=replay,
        plain=_plain(settings),
    )
    commands = Commands(options, worker=name, clock=monotonic, about=facts, asks=asks)
    routed = partial(RoutedExecutor, commands=commands, worker=name, emit=emit)

    def mute() -> Collection[str]:
        return commands.mute

    match settings.executor:
        case "hand":
            chosen = _hand_options(app, settings, hands=hands, replay=replay, buffer_s=buffer_s)
            pool = Hands(chosen, worker=name, clock=monotonic, emit=emit, asks=asks, about=facts)
            switch = routed(
                pool, plans=lambda: pool.commands, surroundings=lambda: pool.surroundings
            )
            return BuiltExecutor(switch, lambda: pool, mute, pool, pool.report_finished)
        case "inline":
            checkout = GitCheckout(Path.cwd())
            loaded = load_app(app) if isinstance(app, str) else app
            found = measure(loaded.registry, checkout)
            doc = {**found, "worker": facts, "executor": "inline"}
            executed = provenance_of(doc, memos_of(loaded.registry))
            inline = _inline(loaded, settings, name, provenance=executed, asks=asks)
            inline.replay, inline.hooks = replay, hooks_of(loaded)
            switch = routed(
                inline, plans=lambda: loaded.registry.commands, surroundings=lambda: found
            )
            dropped, planned = ignores(loaded.registry), schedules_of(loaded)
            here = AppInfo(loaded.url, loaded.schema, dropped, planned, announced(loaded))
            return BuiltExecutor(switch, lambda: here, mute, None, inline.reporter)
        case _:
            return BuiltExecutor(commands, lambda: commands.app, mute)


def _plain(settings: Settings) -> Command | None:
    """How tasks that are not commands are executed as commands, if they are."""
    match settings.executor:
        case "command":
            return Command()
        case "container":
            return Command(container=Container())
        case _:
            return None


def hands_of(settings: Settings) -> int:
    """The number of hands of a worker with these settings."""
    return 0 if settings.executor == "inline" else settings.hands or os.cpu_count() or 1


def worker_options(settings: Settings, name: str, *, hands: int, drain: bool) -> WorkerOptions:
    """Options of a worker with these settings; independent of the store."""
    return WorkerOptions(
        worker=name,
        queues=settings.queues or {},
        hands=hands,
        concurrency=settings.concurrency,
        lease_for=settings.lease,
        grace=settings.grace,
        poll=settings.poll_interval,
        drain=drain,
        version=version("byrote"),
        log_tracebacks=settings.log_tracebacks,
    )


def about(settings: Settings) -> dict[str, Any]:
    """The facts about a worker that provenance records."""
    return {
        "byrote": version("byrote"),
        "python": platform.python_version(),
        "settings": fingerprint(settings),
    }


def _inline(
    app: Any, settings: Settings, name: str, *, provenance: Provenance, asks: Asks
) -> Inline:
    return Inline(
        app.registry,
        concurrency=settings.concurrency,
        threads=settings.threads,
        worker=name,
        clock=monotonic,
        asks=asks,
        once=partial(once, schema=settings.schema or app.schema),
        provenance=provenance,
        deterministic=settings.deterministic,
        failures=FailureLog(tracebacks=settings.log_tracebacks, ends=not app.logs_failures),
    )


def _hand_options(
    app: str, settings: Settings, *, hands: int, replay: ReplayMode | None, buffer_s: float
) -> HandOptions:
    return HandOptions(
        app=app,
        schema=settings.schema,
        hands=hands,
        concurrency=settings.concurrency,
        threads=settings.threads,
        max_tasks=settings.max_tasks,
        max_rss=settings.max_rss,
        python=settings.python_path or sys.executable,
        log_format=log_form(settings),
        log_level=settings.log_level,
        log_tracebacks=settings.log_tracebacks,
        deterministic=settings.deterministic,
        replay=replay,
        buffer_s=buffer_s,
    )


def log_form(settings: Settings) -> Format:
    """Return the log format; `auto` is text on a terminal and JSON otherwise."""
    if settings.log_format == "auto":
        return "text" if sys.stderr.isatty() else "json"
    return settings.log_format
