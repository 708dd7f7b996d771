# SPDX-License-Identifier: MIT
"""`byrote dead`: runs that failed for good and wait for a person."""

from collections.abc import Sequence
from functools import partial

import click

from byrote.cli.database import open_store, whole_id
from byrote.cli.errors import FAILED
from byrote.cli.lazy import ListingGroup
from byrote.cli.options import RunId, database_options
from byrote.cli.output.run_page import fields_of, short_error, show_run
from byrote.cli.output.tables import LOCKED_ROW, print_json, print_table, show_locked
from byrote.core.errors import RunNotFound
from byrote.core.run import Run
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.locks import Moves, move

HEADS = ("id", "task", "queue", "attempts", "failed", "error")
IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True, type=RunId())


@click.group(cls=ListingGroup, epilog="Example: byrote dead --queue mail")
def dead() -> None:
    """List, show, requeue and delete dead letters. Without a command, list them."""


@dead.command("list", epilog="Example: byrote dead list --task send_email --json")
@database_options
@click.option("--queue")
@click.option("--task", help="The task's name.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
def list_dead(
    *, url: str | None, as_json: bool, queue: str | None, task: str | None, limit: int
) -> None:
    """List dead letters, the latest first."""
    with open_store(url) as store:
        found = store.all(queries.dead(queue=queue, task=task, limit=limit))
    if as_json:
        for run in found:
            print_json({**fields_of(run), "errors": run.faults})
    else:
        print_table(HEADS, map(_row, found), empty="No dead letters.")


def _row(run: Run) -> tuple[object, ...]:
    failed = "" if run.finished_at is None else f"{run.finished_at:%Y-%m-%d %H:%M:%S}"
    return run.id, run.task, run.queue, run.attempts, failed, short_error(run)


@dead.command(epilog="Example: byrote dead show 01932c4e")
@click.argument("begun", metavar="ID", type=RunId())
@database_options
def show(begun: str, *, url: str | None, as_json: bool) -> None:
    """Show everything about one dead letter."""
    with open_store(url) as store:
        run = store.first(queries.run(whole_id(store, begun)))
    if run is None or run.status is not Status.FAILED:
        raise RunNotFound(begun)
    if as_json:
        print_json(fields_of(run, whole=True))
    else:
        show_run(run)


@dead.command(epilog="Example: byrote dead requeue 01932c4e")
@IDS
@database_options
def requeue(ids: Sequence[str], *, url: str | None, as_json: bool) -> None:
    """Bring dead letters back with a fresh budget of attempts."""
    with open_store(url) as store:
        whole = [_dead_id(store.first(queries.run(whole_id(store, b))), b) for b in ids]
        done = move(partial(queries.retry, was=Status.FAILED), whole, store.all)
    _report(whole, done, "ready again", as_json=as_json)


@dead.command(epilog="Example: byrote dead delete 01932c4e")
@IDS
@database_options
def delete(ids: Sequence[str], *, url: str | None, as_json: bool) -> None:
    """Delete dead letters for good."""
    with open_store(url) as store:
        whole = [_dead_id(store.first(queries.run(whole_id(store, b))), b) for b in ids]
        done = move(queries.delete_dead, whole, store.all)
    _report(whole, done, "deleted", as_json=as_json)


def _dead_id(run: Run | None, begun: str) -> str:
    if run is None or run.status is not Status.FAILED:
        raise RunNotFound(begun)
    return run.id


def _report(ids: Sequence[str], moves: Moves[str], success: str, *, as_json: bool) -> None:
    for run_id in ids:
        done, locked = run_id in moves.done, run_id in moves.locked
        why = LOCKED_ROW if locked else "another call changed it first"
        words = success if done else f"unchanged: {why}"
        if as_json:
            print_json({"id": run_id, "done": done, "locked": locked, "message": words})
        else:
            click.echo(f"{run_id}  {words}")
    show_locked(len(moves.locked), as_json=as_json)
    if set(ids) - set(moves.done):
        click.get_current_context().exit(FAILED)
