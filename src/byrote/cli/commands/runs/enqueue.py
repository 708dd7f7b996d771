# SPDX-License-Identifier: MIT
"""`byrote enqueue`: accepts runs of a task by its name; no app is needed."""

import itertools
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import click
import psycopg

from byrote.assembly.app import App
from byrote.assembly.identity import new_id
from byrote.assembly.settings import resolve
from byrote.cli.database import name_database, open_app
from byrote.cli.options import DurationParam, Label, MomentParam, database_options, wait_option
from byrote.cli.output.accepted import print_result
from byrote.cli.output.tables import print_json
from byrote.cli.support.spec_writer import Writer
from byrote.core.json.codec import PAYLOAD_LARGE
from byrote.core.policy import ONCE, Retry
from byrote.core.spec import Delivery, Spec, check_name
from byrote.store import bulk
from byrote.store.runners.sync import unreachable

DRAWN_EVERY = 1_000


@click.command(
    epilog="""\b
Examples: byrote enqueue send_email '{"to": "a@example.com"}' --queue mail --wait=10
          byrote enqueue resize --args '["cat.png", 64]' --after 10m
          byrote enqueue report --unique-key report:2026-11
          byrote enqueue send_email --many - < addresses.jsonl"""
)
@click.argument("task")
@click.argument("kwargs", metavar="[JSON]", required=False)
@database_options
@click.option("--args", "args", metavar="JSON", help="Positional arguments, as a JSON array.")
@click.option("--many", metavar="FILE", type=click.File("rb"), help="One JSON object per line.")
@click.option("--queue", default="default", show_default=True)
@click.option("--priority", type=click.IntRange(-100, 100), default=0, help="Higher first.")
@click.option("--after", "run_after", type=MomentParam(), help="Not before: 10m, or an ISO time.")
@click.option("--timeout", type=DurationParam(), help="Stop an attempt after this long.")
@click.option("--attempts", type=click.IntRange(1, 1000), default=1, help="Tries in all.")
@click.option("--label", "labels", type=Label(), multiple=True, help="May be given many times.")
@click.option("--version", type=click.IntRange(min=1), default=1, help="The task's version.")
@click.option("--unique-key", metavar="KEY", help="No new run while one with KEY is unfinished.")
@wait_option
def enqueue(
    task: str,
    kwargs: str | None,
    *,
    url: str | None,
    as_json: bool,
    args: str | None,
    many: Iterable[bytes] | None,
    version: int,
    attempts: int,
    labels: tuple[tuple[str, str], ...],
    wait: timedelta | None,
    **options: Any,
) -> None:
    """Accept one run of TASK with these keyword arguments, and print its id.

    JSON is an object of keyword arguments; it is stored byte for byte as you write it. The name is
    not looked up: a run waits until a worker knows its task. The task's own queue, retries and
    timeout are known only to its app, so set them here.

    With --many, FILE (- is standard input) has one JSON object per line; all of them are accepted
    in one transaction, or none.

    With --unique-key, nothing is enqueued while a run of TASK with that key has not ended; the id
    of that run is printed instead, and --wait waits for it.
    """
    delivery = _delivery(attempts, dict(labels), **options)
    limit = resolve().settings.payload_limit(delivery.queue)
    writer = Writer(check_name("task", task), version, args or "[]", delivery, limit=limit)
    if many is not None:
        if kwargs is not None or wait is not None:
            raise click.UsageError("--many takes its JSON from the file, and does not --wait.")
        if delivery.unique_key is not None:
            raise click.UsageError(
                "--unique-key cannot be combined with --many: all lines would share the key."
            )
        with open_app(url) as app:
            name_database(app.store)
            _accept_all(app, writer.lines(many), as_json=as_json)
        return
    spec = writer.spec(kwargs or "{}")
    if len(spec.text) > PAYLOAD_LARGE and not as_json:
        size = f"{len(spec.text):,} characters"
        click.echo(f"byrote: a spec of {size} slows the queue; pass a reference instead.", err=True)
    with open_app(url) as app:
        name_database(app.store)
        accept(app, spec, wait, as_json=as_json)


def accept(app: App, spec: Spec, wait: timedelta | None, *, as_json: bool) -> None:
    """Enqueue a spec and print the run's id, or its result with `wait`."""
    run_id = new_id()
    holder = app.store.accept([(run_id, spec)]).instead.get(run_id)
    if holder is not None and not as_json:
        message = "a run with this unique key has not ended; nothing new was enqueued."
        click.echo(f"byrote: {message}", err=True)
    created = None if spec.delivery.unique_key is None else holder is None
    print_result(app, holder or run_id, wait, as_json=as_json, created=created)


def _delivery(
    attempts: int,
    labels: dict[str, str],
    *,
    queue: str,
    priority: int,
    run_after: datetime | timedelta | None,
    timeout: timedelta | None,
    unique_key: str | None,
) -> Delivery:
    return Delivery(
        queue=queue,
        priority=priority,
        run_after=run_after,
        timeout=timeout,
        retry=ONCE if attempts == 1 else Retry(attempts=attempts),
        labels=labels or None,
        unique_key=unique_key,
    )


def _accept_all(app: App, specs: Iterator[Spec], *, as_json: bool) -> None:
    counter = itertools.count()
    try:
        with (
            app.store.borrow() as connection,
            click.progressbar(
                specs,
                label="lines read",
                show_pos=True,
                update_min_steps=DRAWN_EVERY,
                file=sys.stderr,
                hidden=not sys.stderr.isatty(),
            ) as read,
        ):
            numbered = ((new_id(), spec) for spec, _ in zip(read, counter, strict=False))
            bulk.enqueue_all(connection, bulk.batches(numbered), app.store.named_schema)
    except psycopg.OperationalError as error:
        raise unreachable(app.address, error) from error
    accepted = next(counter)
    if as_json:
        print_json({"accepted": accepted})
    else:
        click.echo(f"{accepted:,} runs accepted.")
