# SPDX-License-Identifier: MIT
"""Executes the tasks of an app in the test's process.

def test_an_order_is_confirmed(byrote_app):
    place_order(42)
    [run] = run_tasks(byrote_app)
    assert run.status == "SUCCESSFUL"
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg

from byrote.assembly.app import App
from byrote.core.errors import BadOption
from byrote.core.run import Run
from byrote.executors.runtime.loading import import_included
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing.binding import connection_of, use_connection
from byrote.testing.hooks import started
from byrote.testing.testbed import AppTestbed

ATTEMPTS_MAX = 10_000
"""Attempts after which `run_tasks` raises, because tasks seem to enqueue each other endlessly."""


def run_tasks(
    app: App,
    queue: str | None = None,
    *,
    connection: psycopg.Connection[Any] | None = None,
    until_empty: bool = True,
    include_deferred: bool = False,
    raise_errors: bool = True,
    now: datetime | None = None,
) -> list[Run]:
    """Execute all due tasks of an app in this process; returns their runs in order.

    On `connection`, in its transaction if it is in one; without it, on that of `use_connection` or
    of the fixture `byrote_app`. Never on the app's own database, whose runs may be real ones.
    Tasks that tasks enqueue run too, unless `until_empty` is False. Time advances by itself to the
    next retry or sleep, and with `include_deferred` to the next `run_after`; `now` sets it. With
    `raise_errors` the error of a task that failed for good is raised once it is stored.
    """
    with _connected(app, connection) as used:
        import_included(app)
        bed = AppTestbed(app, used, queue=queue)
        with bed.time(now), started(app):
            # Once: the time that retries skip must not make schedules tick.
            bed.beat()
            while True:
                worked = bed.round(lambda: raise_errors and bed.error is not None)
                if raise_errors and bed.error is not None:
                    raise bed.error
                if bed.attempts > ATTEMPTS_MAX:
                    raise RuntimeError(
                        f"Tasks are still due after {ATTEMPTS_MAX:,} attempts; "
                        "do they enqueue each other endlessly?"
                    )
                if not until_empty or not (
                    worked or bed.move_on(include_deferred=include_deferred)
                ):
                    break
        return [run for run_id in bed.done for run in fetch(used, queries.run(run_id))]


@contextmanager
def _connected(
    app: App, connection: psycopg.Connection[Any] | None
) -> Iterator[psycopg.Connection[Any]]:
    """The connection to use; the app enqueues on it too, so that both have the same time."""
    used = connection or connection_of(app)
    if used is None:
        raise BadOption(
            "run_tasks needs a connection to a database for tests, because it executes everything "
            "that is due there: use the fixture byrote_app, or run_tasks(app, connection=…)."
        )
    with use_connection(app, used):
        yield used
