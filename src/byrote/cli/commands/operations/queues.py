# SPDX-License-Identifier: MIT
"""`byrote queues`: lists, pauses, resumes, purges and configures queues."""

from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

from byrote.assembly.operations.bulk import set_retention
from byrote.assembly.operations.methods import perform
from byrote.assembly.operations.verbs import known_queue
from byrote.cli.commands.runs.bulk import dry_run_option, move_matches, yes_option
from byrote.cli.commands.runs.history import at_option, show_queues_at
from byrote.cli.database import open_store
from byrote.cli.lazy import ListingGroup
from byrote.cli.options import DurationParam, database_options
from byrote.cli.output.tables import print_json, print_table
from byrote.core.duration import spoken
from byrote.core.text.printable import one_line
from byrote.core.unserved import end_of, like, patience
from byrote.store import queries
from byrote.store.queries.matching import PURGED, RunFilter
from byrote.store.rows import QueueRow

HEADS = ("queue", "state", "ready", "waiting", "running", "dead", "oldest ready")


@click.group(cls=ListingGroup, epilog="Example: byrote queues --json")
def queues() -> None:
    """List queues, pause and resume them. Without a command, list them."""


@queues.command("list", epilog="Example: byrote queues list")
@database_options
@at_option
def list_queues(*, url: str | None, as_json: bool, at: datetime | None) -> None:
    """List every queue with its counts of runs; with --at, as they were then, with workers."""
    with open_store(url) as store:
        if at is not None:
            show_queues_at(store, at, as_json=as_json)
            return
        found = store.all(queries.queues())
        strange = store.all(queries.unserved_tasks())
    if as_json:
        for queue in found:
            tasks = [one.key for one in strange if one.queue == queue.queue]
            print_json({**msgspec.structs.asdict(queue), "unserved": tasks})
    else:
        print_table(HEADS, map(_row, found), empty="No queue has been used yet.")
        for one in strange:
            text = f"{one.queue}: no live worker knows {one.key}{like(one.key, one.known)}"
            click.echo(one_line(f"{text}. {end_of(one.unserved_for)}"))


def _row(queue: QueueRow) -> tuple[object, ...]:
    state = "open" if queue.paused_at is None else "paused"
    age = queue.oldest_ready_s
    oldest = "" if age is None else spoken(timedelta(seconds=max(round(age), 0)))
    return queue.queue, state, queue.ready, queue.waiting, queue.running, queue.dead, oldest


@queues.command(epilog="Example: byrote queues pause mail")
@click.argument("name")
@database_options
def pause(name: str, *, url: str | None, as_json: bool) -> None:
    """Stop claims from a queue; running attempts continue."""
    with open_store(url) as store:
        perform(known_queue(name), store)
        store.all(queries.pause(name))
    _report(name, paused=True, as_json=as_json)


@queues.command(epilog="Example: byrote queues resume mail")
@click.argument("name")
@database_options
def resume(name: str, *, url: str | None, as_json: bool) -> None:
    """Allow claims from a queue again."""
    with open_store(url) as store:
        perform(known_queue(name), store)
        store.all(queries.resume(name))
    _report(name, paused=False, as_json=as_json)


@queues.command("events", epilog="Example: byrote queues events mail few")
@click.argument("name")
@click.argument("kinds", type=click.Choice(["all", "few"]))
@database_options
def choose_events(name: str, kinds: str, *, url: str | None, as_json: bool) -> None:
    """Log all kinds of events of a queue, or few: without Promoted and Renewed.

    With few, `byrote verify` cannot check leases of its runs after their first expiry.
    """
    with open_store(url) as store:
        perform(known_queue(name), store)
        store.all(queries.set_events(name, events=kinds))
    if as_json:
        print_json({"queue": name, "events": kinds})
    else:
        number = "all" if kinds == "all" else "fewer"
        click.echo(one_line(f"{name} now logs {number} kinds of events."))


@queues.command("unserved", epilog="Example: byrote queues unserved mail 2h")
@click.argument("name")
@click.argument("after", metavar="DURATION|never")
@database_options
def wait_for_worker(name: str, after: str, *, url: str | None, as_json: bool) -> None:
    """Set how long ready runs wait for a worker that knows their task, before they fail.

    The time counts while workers serve the queue and none of them knows the task and version;
    24h unless set. With `never` such runs wait without limit.
    """
    limit = patience(after)
    with open_store(url) as store:
        perform(known_queue(name), store)
        store.all(queries.set_unserved(name, after=limit))
    if as_json:
        seconds = None if limit is None else limit.total_seconds()
        print_json({"queue": name, "unserved_for_s": seconds})
    else:
        click.echo(one_line(f"A run in {name} whose task no worker knows: {end_of(limit)}"))


@queues.command(epilog="Example: byrote queues purge mail --dry-run")
@click.argument("name")
@database_options
@dry_run_option
@yes_option
def purge(name: str, *, url: str | None, as_json: bool, dry_run: bool, yes: bool) -> None:
    """Cancel all waiting and ready runs of a queue, after a question; running attempts continue.

    Exits with 1 if rows are locked by another transaction; the others are cancelled nevertheless.
    """
    with open_store(url) as store:
        chosen = RunFilter(PURGED, queue=perform(known_queue(name), store))
        words = ("Cancel", "cancelled")
        how: Any = {"dry_run": dry_run, "yes": yes, "as_json": as_json}
        move_matches(store, queries.cancel, chosen, words=words, **how)


@queues.command("set", epilog="Example: byrote queues set mail --keep-done 7d --keep-dead 180d")
@click.argument("name")
@database_options
@click.option("--keep-done", type=DurationParam(), help="How long to keep ended runs.")
@click.option("--keep-dead", type=DurationParam(), help="How long to keep dead letters.")
def set_queue(
    name: str,
    *,
    url: str | None,
    as_json: bool,
    keep_done: timedelta | None,
    keep_dead: timedelta | None,
) -> None:
    """Set how long a queue keeps ended runs and dead letters; shows both.

    Ended runs are deleted by whole days, so the minimum of --keep-done is 1d. Without options,
    nothing changes. A Django project sets this with RETENTION instead.
    """
    with open_store(url) as store:
        found = perform(set_retention(name, keep_done=keep_done, keep_dead=keep_dead), store)
    done, dead = found.keep_done, found.keep_dead
    if as_json:
        kept = {"keep_done_s": done.total_seconds(), "keep_dead_s": dead.total_seconds()}
        print_json({"queue": name, **kept})
    else:
        text = f"{name} keeps ended runs for {spoken(done)} and dead letters for {spoken(dead)}."
        click.echo(one_line(text))


def _report(name: str, *, paused: bool, as_json: bool) -> None:
    if as_json:
        print_json({"queue": name, "paused": paused})
    else:
        click.echo(one_line(f"{name} is {'paused' if paused else 'open'}."))
