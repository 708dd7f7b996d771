# SPDX-License-Identifier: MIT
"""`byrote worker`: executes runs for an app until it is stopped."""

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import psycopg

from byrote.assembly.clock import now
from byrote.assembly.executors import log_form
from byrote.assembly.identity import jitter
from byrote.assembly.settings import Settings, resolve
from byrote.assembly.signals import signals_to
from byrote.assembly.worker import build_worker, check_database
from byrote.cli.options import url_option
from byrote.cli.support.server_probe import new_queues
from byrote.embedded.databases import own_url
from byrote.embedded.server import open_server
from byrote.executors.runtime.output import attempt_fields
from byrote.observe.logs import LogWriter, set_up_logging
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.sync import unreachable

_log = logging.getLogger("byrote.worker")

COUNT = click.IntRange(min=1)


@click.command(
    epilog="Example: byrote worker shop.tasks:app --queues mail=3,default --hands 4",
)
@click.argument("app", metavar="MODULE:APP")
@url_option
@click.option(
    "-Q",
    "--queues",
    metavar="A,B=3",
    help="Queues to serve, with weights; default: those of its tasks.",
)
@click.option("-c", "--concurrency", type=COUNT, help="Async tasks at once, over all hands.")
@click.option("--hands", type=COUNT, help="Child processes; default: one per core.")
@click.option("--threads", type=COUNT, help="Sync tasks at once in each hand.")
@click.option("--drain", is_flag=True, help="Exit when no run is left to execute.")
@click.option("--max-tasks", type=COUNT, help="Replace a hand after this many runs.")
@click.option(
    "--max-rss", metavar="SIZE", help="Replace a hand whose memory exceeds this, e.g. 512MB."
)
@click.option("--lease", metavar="DURATION", help="Duration of a lease between renewals.")
@click.option("--grace", metavar="DURATION", help="How long a stop waits for running attempts.")
@click.option(
    "--poll", "poll_interval", metavar="DURATION", help="Poll interval without a notification."
)
@click.option(
    "--executor",
    type=click.Choice(["hand", "inline", "command", "container"]),
    help="Where tasks execute.",
)
@click.option(
    "--payload-mode",
    type=click.Choice(["stdin", "file", "argv"]),
    help="Default way to pass the spec to commands.",
)
@click.option(
    "--claims",
    type=click.Choice(["durable", "fast"]),
    help="fast: claims do not wait for the disk.",
)
@click.option("--no-listen", is_flag=True, help="Only poll; for poolers that cannot LISTEN.")
@click.option("--worker-id", metavar="ID", help="Name of the worker; default: unique per start.")
@click.option(
    "--log-format", type=click.Choice(["auto", "text", "json"]), help="Format of the log."
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
def worker(app: str, *, url: str | None, drain: bool, no_listen: bool, **flags: Any) -> None:
    """Execute runs for the app at MODULE:APP until stopped.

    SIGTERM or Ctrl-C stops claiming, waits up to --grace for running attempts, and returns the
    others to the queue uncharged. A second one returns everything at once. SIGUSR1 prints the
    stack of every thread. The log goes to standard error: text on a terminal, JSON otherwise.

    With --drain it exits when its queues have no run left that it can execute. It first
    reclaims runs whose lease has expired; it does not wait for runs that other workers execute.

    Other settings come from BYROTE_* variables, byrote.toml or pyproject.toml; see
    `byrote config show --origin`.
    """
    flags |= {"database_url": url, "listen": False if no_listen else None}
    settings = resolve(flags).settings
    emit = start_log(settings)
    check_database(settings)
    if flags["queues"] is not None and settings.database_url is not None:
        address = DatabaseAddress(settings.database_url, pooled=settings.pooled)
        _mention_new_queues(address, settings.queues or {})
    with contextlib.ExitStack() as opened:
        fallback = functools.partial(_embedded, opened)
        built = build_worker(app, settings, emit=emit, drain=drain, fallback=fallback)
        with signals_to(built):
            built.run()


def start_log(settings: Settings) -> LogWriter:
    """Set up logging in this process; returns the writer of the worker's events."""
    form = log_form(settings)
    set_up_logging(form, settings.log_level, attempt_fields)
    return LogWriter(sys.stderr, form=form, level=settings.log_level, now=now)


def _embedded(opened: contextlib.ExitStack) -> str:
    """Start or join the embedded server; it is released when the worker has stopped."""
    server = opened.enter_context(open_server(environ=os.environ))
    url = own_url(server.url, Path.cwd(), os.environ)
    migrate(DatabaseAddress(url), jitter=jitter)
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
