# SPDX-License-Identifier: MIT
"""`byrote runs`: lists, shows, cancels and retries runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from byrote.assembly.replay.environments import environments
from byrote.cli.commands.runs.artifacts import artifacts, fetch
from byrote.cli.commands.runs.bulk import (
    check_ids_or_filters,
    filter_options,
    move_matches,
    named,
    since_option,
)
from byrote.cli.commands.runs.diff import diff
from byrote.cli.commands.runs.history import at_option, history, known_run, run_then
from byrote.cli.commands.runs.logs import logs
from byrote.cli.commands.runs.signal import signal
from byrote.cli.database import open_store, whole_id
from byrote.cli.errors import FAILED
from byrote.cli.options import Label, RunId, SpecHash, database_options
from byrote.cli.output.provenance import print_provenance, provenance_fields, seed_in
from byrote.cli.output.run_page import fields_of, row_of, show_run, show_steps, step_fields
from byrote.cli.output.tables import LOCKED_ROW, print_json, print_table, show_locked
from byrote.core.errors import RunNotFound
from byrote.core.state import Status
from byrote.core.text.printable import one_line
from byrote.store import queries
from byrote.store.locks import move
from byrote.store.queries.matching import (
    CANCELLED,
    RETRIED,
    cancel_filter,
    retry_filter,
    retry_verb,
)
from byrote.store.runners.sync import Store

HEADS = ("id", "status", "task", "queue", "attempts", "enqueued", "finished", "error")
IDS = click.argument("ids", metavar="[ID...]", nargs=-1, type=RunId())


@click.group()
def runs() -> None:
    """List, show, cancel and retry runs.

    An id may be shortened to a unique prefix.
    """


runs.add_command(logs)
runs.add_command(signal)
runs.add_command(artifacts)
runs.add_command(fetch)
runs.add_command(diff)
runs.add_command(history)


@runs.command("list", epilog="Example: byrote runs list --status failed --queue mail --json")
@database_options
@click.option("--status", type=click.Choice(list(Status), case_sensitive=False))
@click.option("--queue")
@click.option("--task", help="The task's name.")
@click.option("--hash", "spec_hash", type=SpecHash(), help="Runs with this spec hash.")
@click.option("--label", "labels", type=Label(), multiple=True, help="May be given many times.")
@since_option
@click.option("--shadow", is_flag=True, help="Also shadow runs, which verified replays create.")
@click.option("--before", type=RunId(), help="Only runs older than this one: the next page.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
def list_runs(
    *,
    url: str | None,
    as_json: bool,
    labels: tuple[tuple[str, str], ...],
    before: str | None,
    **filters: Any,
) -> None:
    """List the newest runs that match, newest first.

    Arguments and results are left out; `byrote runs show` has them.
    """
    with open_store(url) as store:
        older = None if before is None else whole_id(store, before)
        query = queries.runs(labels=dict(labels) or None, before=older, **filters)
        found = store.all(query)
    if as_json:
        for run in found:
            print_json(fields_of(run))
    else:
        print_table(HEADS, map(row_of, found), empty="No runs match.")


@runs.command(epilog="Example: byrote runs show 01932c4e-8d5b-7a90-b1c2-3d4e5f607182")
@click.argument("begun", metavar="ID", type=RunId())
@database_options
@at_option
def show(begun: str, *, url: str | None, as_json: bool, at: datetime | None) -> None:
    """Show everything about one run: arguments, result, steps, errors, what executed attempts.

    With --at, as it was then. Exits with 4 if the run did not exist.
    """
    with open_store(url) as store:
        run = known_run(store, begun)
        steps = store.all(queries.steps([run.id]))
        replays = store.all(queries.replays(run.id))
        if at is not None:
            run = run_then(store, run, at)
            steps = [step for step in steps if step.at <= at]
            replays = []  # The list does not have the times when they were made.
        found = environments(store, run)
        stands = [] if at is not None else store.all(queries.why_waiting(run.id))
    why = "".join(one.why for one in stands)
    if as_json:
        extra = {
            "why": why or None,
            "replays": list(map(msgspec.to_builtins, replays)),
            "steps": list(map(step_fields, steps)),
            "provenance": provenance_fields(run, found),
            "seed": seed_in(run, found),
        }
        print_json({**fields_of(run, whole=True), **extra})
    else:
        show_run(run, replays)
        if why:
            click.echo(f"\nwhy it is not running\n  {one_line(why)}")
        show_steps(steps)
        print_provenance(run, found)


@runs.command(epilog="Example: byrote runs cancel --task send_email --since 1h --dry-run")
@IDS
@database_options
@filter_options(*CANCELLED)
def cancel(
    ids: Sequence[str], *, url: str | None, as_json: bool, dry_run: bool, yes: bool, **filters: Any
) -> None:
    """Cancel runs: at once if no worker executes them, else by asking the worker.

    Names runs by their ids, or by filters: then all unfinished ones that match, after a question.
    Exits with 4 if a run does not exist, with 1 if one had finished already or its row is locked
    by another transaction; the others are cancelled nevertheless.
    """
    given = named(filters)
    check_ids_or_filters(ids, given, dry_run=dry_run)
    how: Any = {"dry_run": dry_run, "yes": yes, "as_json": as_json}
    with open_store(url) as store:
        if given:
            words = ("Cancel", "cancelled")
            move_matches(store, queries.cancel, cancel_filter(**given), words=words, **how)
            return
        whole = [whole_id(store, begun) for begun in ids]
        moves = move(queries.cancel, whole, store.all)
        messages = {Status.RUNNING: "its worker was asked to stop"}
        changed = {run.id: messages.get(Status(run.status), "cancelled") for run in moves.done}
        _report(
            store, whole, changed, "it had finished already", locked=moves.locked, as_json=as_json
        )


@runs.command(epilog="Example: byrote runs retry --task send_email --since 1h")
@IDS
@database_options
@filter_options(*RETRIED)
def retry(
    ids: Sequence[str], *, url: str | None, as_json: bool, dry_run: bool, yes: bool, **filters: Any
) -> None:
    """Retry runs now, with a fresh budget of attempts.

    Dead letters become ready again, waiting runs stop waiting. Names runs by their ids, or by
    filters: then all dead letters that match, or with --status waiting all waiting runs, after a
    question. Repeat a run that succeeded with `byrote replay`. Exits with 4 if a run does not
    exist, with 1 if one cannot be retried or its row is locked by another transaction; the others
    are retried nevertheless.
    """
    given = named(filters)
    check_ids_or_filters(ids, given, dry_run=dry_run)
    how: Any = {"dry_run": dry_run, "yes": yes, "as_json": as_json}
    with open_store(url) as store:
        if given:
            chosen = retry_filter(**given)
            move_matches(store, retry_verb(chosen), chosen, words=("Retry", "retried"), **how)
            return
        whole = [whole_id(store, begun) for begun in ids]
        moves = move(queries.retry, whole, store.all)
        changed = dict.fromkeys(moves.done, "ready again")
        refused = "only failed and waiting runs are retried"
        _report(store, whole, changed, refused, locked=moves.locked, as_json=as_json)


def _report(
    store: Store,
    ids: Sequence[str],
    changed: dict[str, str],
    refused: str,
    *,
    locked: Sequence[str],
    as_json: bool,
) -> None:
    """Print the outcome for each run; exit with an error if any run is unchanged."""
    unknown = []
    for run_id in ids:
        run = store.first(queries.run(run_id))
        if run is None:
            unknown.append(run_id)
            continue
        done, stuck = run_id in changed, run_id in locked
        message = changed.get(run_id, f"unchanged: {LOCKED_ROW if stuck else refused}")
        if as_json:
            fields = {"id": run_id, "done": done, "locked": stuck, "status": run.status}
            print_json({**fields, "message": message})
        else:
            click.echo(f"{run_id}  {run.status}  {message}")
    show_locked(len(locked), as_json=as_json)
    if unknown:
        raise RunNotFound(unknown[0])
    if any(run_id not in changed for run_id in ids):
        click.get_current_context().exit(FAILED)
