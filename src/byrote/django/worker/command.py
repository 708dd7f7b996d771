# SPDX-License-Identifier: MIT
"""`manage.py byrote worker`: a worker for the tasks of one backend."""

import os
import sys
from copy import copy
from typing import Any

import click
from django.conf import settings as site
from django.db import DatabaseError, connections

from byrote.assembly.settings import Settings, resolve
from byrote.assembly.signals import signals_to
from byrote.assembly.worker import build_worker, check_database
from byrote.cli.commands.processes.worker import worker as plain_worker
from byrote.cli.support.reload import keep_fresh
from byrote.cli.support.worker_process import check_left, start_log
from byrote.core.errors import BadOption
from byrote.core.ports.replies import UnknownTaskRef
from byrote.django.app import backend_of, imports, set_up
from byrote.django.backend.backend import Backend
from byrote.django.backend.database import fetch
from byrote.django.backend.policy import Retention
from byrote.django.schema.checks import faults_of_worker
from byrote.django.worker.connection import flags_of
from byrote.django.worker.reload import watched
from byrote.store.queries.retention import set_retention

LEFT_OUT = frozenset({"app", "url", "schema", "executor", "no_listen", "reload"})


def _parameters() -> list[click.Parameter]:
    """The options of `byrote worker` that apply here, with another help of `--concurrency`."""
    params = [copy(param) for param in plain_worker.params if param.name not in LEFT_OUT]
    for param in params:
        if isinstance(param, click.Option) and param.name == "concurrency":
            param.help = "Tasks at once, sync or async, spread over hands and threads."
    return params


@click.command(
    params=_parameters(),
    epilog="Example: python manage.py byrote worker --queues default,mail --concurrency 8",
)
@click.option("--backend", default="default", metavar="ALIAS", help="The backend in TASKS.")
@click.option(
    "--reload/--no-reload",
    default=None,
    help="Restart when code changes; default with DEBUG, unless draining.",
)
def worker(*, backend: str, reload: bool | None, drain: bool, **flags: Any) -> None:
    """Execute the tasks of one backend until stopped.

    It serves every queue of the backend unless --queues names some. --concurrency is how many
    tasks run at once, whether async or not; --hands and --threads set it in detail.

    SIGTERM or Ctrl-C stops claiming, waits up to --grace for running tasks, and returns the others
    to their queues. A second one returns all of them at once.
    """
    set_up()
    ours = backend_of(backend)
    reload = is_watched(drain=drain) if reload is None else reload
    report_faults(ours, warn=not reload)
    settings = settings_of(ours, flags)
    if reload:
        keep_fresh(settings, watched)
        return
    check_database(settings)
    store_retention(ours, settings)
    built = build_worker(
        f"byrote.django.app:{backend}",
        settings,
        emit=start_log(settings),
        drain=drain,
        recognise=lambda unknown: recognises(ours, flags, unknown),
    )
    with signals_to(built):
        built.run()
    check_left(built)


def is_watched(*, drain: bool) -> bool:
    """The default of --reload: with DEBUG, if the worker is the process's own command."""
    return bool(site.DEBUG) and not drain and sys.argv[1:2] == ["byrote"]


def report_faults(backend: Backend, *, warn: bool) -> None:
    """Print warnings of the system checks; raises BadOption for an error."""
    found = [one for one in faults_of_worker(backend) if not one.is_silenced()]
    for message in found:
        if message.is_serious():
            raise BadOption(f"{message.msg} {message.hint or ''}".strip())
        if warn:
            click.echo(f"byrote: {message.msg} {message.hint} ({message.id})", err=True)


def settings_of(backend: Backend, flags: dict[str, Any]) -> Settings:
    """Settings of a worker: the database from Django, all others as for `byrote worker`."""
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


def store_retention(backend: Backend, settings: Settings) -> None:
    """Store RETENTION for the queues of this worker; without RETENTION nothing changes."""
    retention = backend.settings.retention
    if retention == Retention():
        return
    try:
        query = set_retention(
            list(settings.queues or ()), keep_done=retention.successful, keep_dead=retention.failed
        )
        fetch(backend.database, query)
    except DatabaseError as error:
        # Not fatal: tasks can still be executed, and a serious fault is reported at the start.
        click.echo(f"byrote: RETENTION could not be stored: {error}", err=True)
    finally:
        connections[backend.database].close()


def spread(flags: dict[str, Any]) -> dict[str, Any]:
    """Spread `--concurrency`, the number of tasks of any kind at once, over hands and threads."""
    concurrency = flags.get("concurrency")
    if concurrency is None or flags.get("hands") or flags.get("threads"):
        return dict(flags)
    hands = min(concurrency, os.cpu_count() or 1)
    return {**flags, "hands": hands, "threads": -(-concurrency // hands)}


def recognises(backend: Backend, flags: dict[str, Any], unknown: UnknownTaskRef) -> bool:
    """Whether this worker can run an unregistered task: by its queue, its alias, and importable."""
    named = None if flags.get("queues") is None else resolve(flags).settings.queues
    if named is not None and unknown.queue not in named:
        return False
    if backend.queues and unknown.queue not in backend.queues:
        return False
    return imports(backend, unknown)
