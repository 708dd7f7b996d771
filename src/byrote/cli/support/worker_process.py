# SPDX-License-Identifier: MIT
"""The process of `byrote worker`: its log, its database and its worker."""

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from byrote.assembly.clock import now
from byrote.assembly.executors import log_form
from byrote.assembly.identity import jitter
from byrote.assembly.operations.address import address_of
from byrote.assembly.settings import Settings, resolve
from byrote.assembly.signals import signals_to
from byrote.assembly.worker import build_worker, check_database
from byrote.cli.support.reload import keep_fresh, project_files
from byrote.cli.support.server_probe import new_queues
from byrote.core.errors import BadOption, RunsLeft
from byrote.embedded.choice import external, open_own
from byrote.executors.runtime.output import attempt_fields
from byrote.observe.logs import LogWriter, set_up_logging
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.sync import unreachable
from byrote.worker.worker import Worker

_log = logging.getLogger("byrote.worker")


def run_worker(app: str, flags: Mapping[str, Any], *, drain: bool) -> None:
    """Execute runs for the app at MODULE:APP until a signal, or until the queues are drained."""
    settings = resolve(flags).settings
    emit = start_log(settings)
    check_database(settings)
    if flags.get("queues") is not None and (url := external(settings.database_url)):
        address = address_of(settings, url)
        _mention_new_queues(address, settings.queues or {})
    with contextlib.ExitStack() as opened:
        fallback = functools.partial(_embedded, opened, settings)
        built = build_worker(app, settings, emit=emit, drain=drain, fallback=fallback)
        with signals_to(built):
            built.run()
        check_left(built)


def check_left(worker: Worker) -> None:
    """Raise RunsLeft if a drain left runs that the worker could not execute."""
    if worker.left is not None and worker.left.stuck:
        raise RunsLeft(f"Drained, but runs were left: {worker.left}.")


def run_fresh_worker(app: str, flags: Mapping[str, Any], *, drain: bool) -> None:
    """Run the same command as a child that is restarted when code changes."""
    if drain:
        raise BadOption("--drain ends the worker and --reload restarts it; leave one of them out.")
    keep_fresh(resolve(flags).settings, lambda: project_files(app))


def start_log(settings: Settings) -> LogWriter:
    """Set up logging in this process; returns the writer of the worker's events."""
    form = log_form(settings)
    set_up_logging(form, settings.log_level, attempt_fields)
    return LogWriter(sys.stderr, form=form, level=settings.log_level, now=now)


def _embedded(opened: contextlib.ExitStack, settings: Settings, given: str | None) -> str:
    """Start or join the embedded server; it is released when the worker has stopped."""
    server, url = open_own(given, Path.cwd(), environ=os.environ)
    opened.enter_context(server)
    migrate(address_of(settings, url), jitter=jitter)
    return url


def _mention_new_queues(address: DatabaseAddress, queues: Mapping[str, int]) -> None:
    """Log queues that were never used: allowed, but often a typing mistake."""
    try:
        with address.open("worker") as connection:
            unused = new_queues(connection, queues)
    except psycopg.errors.UndefinedTable:
        return  # The worker checks the schema next and reports what to do.
    except psycopg.OperationalError as error:
        raise unreachable(address, error) from error
    for name in unused:
        _log.info("queue %s is new to this database", name)
