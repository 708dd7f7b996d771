# SPDX-License-Identifier: MIT
"""Puts a worker together from settings."""

import os
import platform
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from byrote.assembly.artifacts import default_place
from byrote.assembly.clock import monotonic
from byrote.assembly.identity import chance, new_token, worker_id
from byrote.assembly.once import once
from byrote.assembly.settings import Settings, fingerprint
from byrote.core.command import Container
from byrote.core.errors import BadOption
from byrote.core.ports import Asks, Emit, Executor
from byrote.core.provenance import provenance_of
from byrote.executors.alone import Alone
from byrote.executors.checkout import Checkout
from byrote.executors.command import CommandOptions, Commands
from byrote.executors.hand_options import HandOptions
from byrote.executors.hands import Hands
from byrote.executors.inline import Inline
from byrote.executors.loading import load_app
from byrote.executors.surroundings import measure, memos_of
from byrote.executors.switch import Switch
from byrote.observe.logs import Format
from byrote.store.connect import Door
from byrote.store.lines import Lines
from byrote.worker.artifacts import artifact_answers
from byrote.worker.means import Means
from byrote.worker.worker import Worker, WorkerOptions


def build_worker(
    app: str,
    settings: Settings,
    *,
    emit: Emit,
    drain: bool = False,
    fallback: Callable[[], str] | None = None,
) -> Worker:
    """A worker for the app at `module:name`; `fallback` gives a database when nobody names one."""
    name = settings.worker_id or worker_id()
    hands = 0 if settings.executor == "inline" else settings.hands or os.cpu_count() or 1
    where = settings.artifacts or default_place(os.environ)
    asks: Asks = SimpleQueue()
    executor, url = _executor(app, settings, name, emit=emit, hands=hands, asks=asks)
    options = WorkerOptions(
        worker=name,
        queues=settings.queues,
        hands=hands,
        concurrency=settings.concurrency,
        lease_for=settings.lease,
        grace=settings.grace,
        poll=settings.poll_interval,
        drain=drain,
        version=version("byrote"),
        artifacts=where,
    )

    def store() -> Lines:
        found = settings.database_url or url() or (fallback and fallback())
        if not found:
            raise BadOption("No database is set; give --url or set BYROTE_DATABASE_URL.")
        door = Door(found, name=f"byrote {name}", pooled=settings.pooled)
        durable = settings.claims == "durable"
        return Lines(door, listen=settings.listen, durable_claims=durable)

    means = Means(name, monotonic, chance, new_token, emit)
    answers = artifact_answers(where, settings.artifact_max)
    return Worker(store, executor, options, means, asks=asks, answers=answers)


def _executor(
    app: str, settings: Settings, name: str, *, emit: Emit, hands: int, asks: Asks
) -> tuple[Executor, Callable[[], str | None]]:
    """What executes, and who can say, once it has started, which database the app names."""
    options = CommandOptions(
        concurrency=hands or os.cpu_count() or 1,
        python=settings.python_path or sys.executable,
        app=app,
    )
    commands = Commands(options, worker=name, clock=monotonic, about=about(settings))
    match settings.executor:
        case "hand":
            pool = _hands(app, settings, name, emit=emit, hands=hands, asks=asks)
            switch = Switch(pool, commands, lambda: pool.commands, lambda: pool.surroundings)
            return switch, lambda: pool.url
        case "inline":
            checkout = Checkout(Path.cwd())
            loaded = load_app(app)
            found = measure(loaded.registry, checkout)
            inline = _inline(loaded, settings, name, surroundings=found, asks=asks)
            switch = Switch(inline, commands, lambda: loaded.registry.commands, lambda: found)
            return switch, lambda: inline.url
        case chosen:
            alone = Alone(commands, options, Container() if chosen == "container" else None)
            return alone, lambda: alone.url


def about(settings: Settings) -> dict[str, Any]:
    """What provenance says of the worker itself."""
    return {
        "byrote": version("byrote"),
        "python": platform.python_version(),
        "settings": fingerprint(settings),
    }


def _inline(
    app: Any, settings: Settings, name: str, *, surroundings: Mapping[str, Any], asks: Asks
) -> Inline:
    return Inline(
        app.registry,
        concurrency=settings.concurrency,
        threads=settings.threads,
        worker=name,
        clock=monotonic,
        url=app.url,
        asks=asks,
        once=once,
        provenance=provenance_of(
            {**surroundings, "worker": about(settings), "executor": "inline"},
            memos_of(app.registry),
        ),
        deterministic=settings.deterministic,
    )


def _hands(app: str, settings: Settings, name: str, *, emit: Emit, hands: int, asks: Asks) -> Hands:
    options = HandOptions(
        app=app,
        hands=hands,
        concurrency=settings.concurrency,
        threads=settings.threads,
        max_tasks=settings.max_tasks,
        max_rss=settings.max_rss,
        python=settings.python_path or sys.executable,
        log_format=log_form(settings),
        log_level=settings.log_level,
        deterministic=settings.deterministic,
    )
    return Hands(options, worker=name, clock=monotonic, emit=emit, asks=asks, about=about(settings))


def log_form(settings: Settings) -> Format:
    """Text on a terminal and JSON otherwise, unless it is set."""
    if settings.log_format == "auto":
        return "text" if sys.stderr.isatty() else "json"
    return settings.log_format
