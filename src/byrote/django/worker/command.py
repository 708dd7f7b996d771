# SPDX-License-Identifier: MIT
"""`manage.py byrote worker`: the plain worker, for the tasks of one backend."""

import os
import sys
from copy import copy
from typing import Any

import click
from django.conf import settings as site
from django.db import DatabaseError, connections

from byrote.assembly.settings import Settings, resolve
from byrote.assembly.signals import signals_to
from byrote.assembly.worker import build_worker
from byrote.cli.commands.processes.worker import start_log
from byrote.cli.commands.processes.worker import worker as plain_worker
from byrote.core.errors import BadOption
from byrote.core.ports.replies import UnknownTaskRef
from byrote.django.app import backend_of, imports, set_up
from byrote.django.backend.backend import Backend
from byrote.django.backend.database import fetch
from byrote.django.backend.policy import Retention
from byrote.django.schema.checks import faults_of_worker
from byrote.django.worker.connection import flags_of
from byrote.django.worker.reload import keep_fresh
from byrote.store.queries.retention import set_retention

LEFT_OUT = frozenset({"app", "url", "executor", "no_listen"})


def _parameters() -> list[click.Parameter]:
    """Those of the plain worker that make sense here, `--concurrency` as it is meant here."""
    kept = [copy(param) for param in plain_worker.params if param.name not in LEFT_OUT]
    for param in kept:
        if isinstance(param, click.Option) and param.name == "concurrency":
            param.help = "Tasks at once, sync or async, spread over hands and threads."
    return kept


@click.command(
    params=_parameters(),
    epilog="Example: python manage.py byrote worker --queues default,mail --concurrency 8",
)
@click.option("--backend", default="default", metavar="ALIAS", help="The backend in TASKS.")
@click.option(
    "--reload/--no-reload",
    default=None,
    help="Start anew when code changes; on with DEBUG, unless draining.",
)
def worker(*, backend: str, reload: bool | None, drain: bool, **flags: Any) -> None:
    """Execute the tasks of one backend until told to stop.

    It serves every queue of the backend unless --queues names some. --concurrency is how many
    tasks run at once, whether async or not; --hands and --threads say it in detail.

    SIGTERM or Ctrl-C stops claiming, waits for what is under way as long as --grace lasts, and
    gives the rest back. A second one gives everything back at once.
    """
    set_up()
    ours = backend_of(backend)
    reload = is_watched(drain=drain) if reload is None else reload
    tell_faults(ours, warn=not reload)
    settings = settings_of(ours, flags)
    if reload:
        keep_fresh(settings)
        return
    keep_as_told(ours, settings)
    built = build_worker(
        f"byrote.django.app:{backend}",
        settings,
        emit=start_log(settings),
        drain=drain,
        recognise=lambda stranger: recognises(ours, flags, stranger),
    )
    with signals_to(built):
        built.run()


def is_watched(*, drain: bool) -> bool:
    """Whether code is watched when nobody says so: with DEBUG, by a command that stays."""
    return bool(site.DEBUG) and not drain and sys.argv[1:2] == ["byrote"]


def tell_faults(backend: Backend, *, warn: bool) -> None:
    """Say what the system checks find; BadOption when a worker would be of no use."""
    found = [one for one in faults_of_worker(backend) if not one.is_silenced()]
    for message in found:
        if message.is_serious():
            raise BadOption(f"{message.msg} {message.hint or ''}".strip())
        if warn:
            click.echo(f"byrote: {message.msg} {message.hint} ({message.id})", err=True)


def settings_of(backend: Backend, flags: dict[str, Any]) -> Settings:
    """Settings of a worker: Django says where the database is, the rest is as everywhere."""
    flags = spread(flags) | flags_of(backend)
    if flags.get("queues") is None:
        flags["queues"] = sorted(backend.queues) or ["default"]
    settings = resolve(flags).settings
    foreign = sorted(set(settings.queues or ()) - backend.queues) if backend.queues else []
    if foreign:
        raise BadOption(
            f"{', '.join(foreign)} is not among the QUEUES of {backend.alias!r}: "
            f"{', '.join(sorted(backend.queues))}."
        )
    return settings


def keep_as_told(backend: Backend, settings: Settings) -> None:
    """Let the queues of this worker keep runs as RETENTION says; without it nothing changes."""
    told = backend.settings.retention
    if told == Retention():
        return
    try:
        asked = set_retention(
            list(settings.queues or ()), keep_done=told.successful, keep_dead=told.failed
        )
        fetch(backend.database, asked)
    except DatabaseError as error:
        # Housekeeping is no reason to execute nothing; what is really wrong is told in a moment.
        click.echo(f"byrote: RETENTION could not be stored: {error}", err=True)
    finally:
        connections[backend.database].close()


def spread(flags: dict[str, Any]) -> dict[str, Any]:
    """`--concurrency` as people mean it: so many tasks at once, of whichever kind."""
    wanted = flags.get("concurrency")
    if wanted is None or flags.get("hands") or flags.get("threads"):
        return dict(flags)
    hands = min(wanted, os.cpu_count() or 1)
    return {**flags, "hands": hands, "threads": -(-wanted // hands)}


def recognises(backend: Backend, flags: dict[str, Any], stranger: UnknownTaskRef) -> bool:
    """Whether a run nobody announced is for this worker: its queue, its alias, and importable."""
    named = None if flags.get("queues") is None else resolve(flags).settings.queues
    if named is not None and stranger.queue not in named:
        return False
    if backend.queues and stranger.queue not in backend.queues:
        return False
    return imports(backend, stranger)
