# SPDX-License-Identifier: MIT
"""`byrote workers`: workers, their queues, and whether they are alive."""

from datetime import datetime

import click
import msgspec

from byrote.cli.commands.runs.history import at_option, show_workers_at
from byrote.cli.database import open_store
from byrote.cli.lazy import ListingGroup
from byrote.cli.options import database_options
from byrote.cli.output.tables import print_json, print_table, worker_command
from byrote.store import queries
from byrote.store.rows import WorkerRow

HEADS = ("worker", "state", "queues", "running", "finished", "hands", "version", "started", "seen")


@click.group(cls=ListingGroup, epilog="Example: byrote workers --json")
def workers() -> None:
    """List workers."""


@workers.command("list", epilog="Example: byrote workers list")
@database_options
@at_option
def list_workers(*, url: str | None, as_json: bool, at: datetime | None) -> None:
    """List recently seen workers, and whether each still sends heartbeats.

    With --at, those that held, claimed or ended runs in the hour before, from the log.
    """
    with open_store(url) as store:
        if at is not None:
            show_workers_at(store, at, as_json=as_json)
            return
        found = store.all(queries.workers())
    if as_json:
        for worker in found:
            print_json(msgspec.structs.asdict(worker))
    else:
        print_table(
            HEADS, map(_row, found), empty=f"No worker is running; start one: {worker_command()}"
        )


def _row(worker: WorkerRow) -> tuple[object, ...]:
    return (
        worker.worker,
        worker.state,
        worker.queues,
        worker.running,
        worker.finished,
        worker.hands,
        worker.version,
        worker.started_at,
        worker.seen_at,
    )
