# SPDX-License-Identifier: MIT
"""`byrote enqueue`: accepts runs of a task, with the delivery options of its app or its workers."""

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import click
import msgspec
import psycopg

from byrote.assembly.app import App
from byrote.assembly.identity import new_id
from byrote.assembly.settings import resolve
from byrote.cli.database import name_database, open_app
from byrote.cli.options import DurationParam, Label, MomentParam, database_options, wait_option
from byrote.cli.output.accepted import print_result
from byrote.cli.output.tables import print_json
from byrote.cli.support.spec_writer import Writer, check_args, check_kwargs
from byrote.cli.support.task_choice import ChosenTask, LoadedApp, announced
from byrote.core.json.codec import PAYLOAD_LARGE
from byrote.core.policy import ONCE, Retry
from byrote.core.ports.announced import named_task
from byrote.core.spec import Delivery, Spec, check_name
from byrote.core.text.printable import one_line
from byrote.store import bulk, queries
from byrote.store.runners.sync import unreachable

DRAWN_EVERY = 1_000


@click.command(
    epilog="""\b
Examples: byrote enqueue send_email '{"to": "a@example.com"}' --app shop.tasks:app --wait=10
          byrote enqueue resize --args '["cat.png", 64]' --queue images --after 10m
          byrote enqueue report --unique-key report:2026-11
          byrote enqueue send_email --many - < addresses.jsonl"""
)
@click.argument("task")
@click.argument("kwargs", metavar="[JSON]", required=False)
@database_options
@click.option(
    "--app", metavar="MODULE:APP", help="The app of the task; default: the setting `app`."
)
@click.option("--args", "args", metavar="JSON", help="Positional arguments, as a JSON array.")
@click.option("--many", metavar="FILE", type=click.File("rb"), help="One JSON object per line.")
@click.option("--queue", metavar="NAME", help="Default: the task's own, else `default`.")
@click.option("--priority", type=click.IntRange(-100, 100), help="Higher first.")
@click.option("--after", "run_after", type=MomentParam(), help="Not before: 10m, or an ISO time.")
@click.option("--timeout", type=DurationParam(), help="Stop an attempt after this long.")
@click.option("--attempts", type=click.IntRange(1, 1000), help="Tries in all.")
@click.option("--label", "labels", type=Label(), multiple=True, help="May be given many times.")
@click.option("--version", type=click.IntRange(min=1), help="Default: the newest known, else 1.")
@click.option("--unique-key", metavar="KEY", help="No new run while one with KEY is unfinished.")
@wait_option
def enqueue(
    task: str,
    kwargs: str | None,
    *,
    url: str | None,
    as_json: bool,
    app: str | None,
    args: str | None,
    many: Iterable[bytes] | None,
    version: int | None,
    wait: timedelta | None,
    **options: Any,
) -> None:
    """Accept one run of TASK with these keyword arguments, and print its id.

    JSON is an object of keyword arguments; it is stored byte for byte as you write it.

    With an app, of --app or the setting `app`, TASK is a name, an alias or the name of a function;
    an unknown task and arguments that do not fit are refused, and the task's own queue, priority,
    retries, timeout and labels apply. Without one, they are those that live workers announce; a
    task that no live worker knows is accepted with a warning, and waits until a worker knows it.
    Options given here have precedence; --json shows what was used.

    With --many, FILE (- is standard input) has one JSON object per line; all of them are accepted
    in one transaction, or none.

    With --unique-key, nothing is enqueued while a run of TASK with that key has not ended; the id
    of that run is printed instead, and --wait waits for it.
    """
    if many is not None and (kwargs is not None or wait is not None):
        raise click.UsageError("--many takes its JSON from the file, and does not --wait.")
    if many is not None and options["unique_key"] is not None:
        raise click.UsageError(
            "--unique-key cannot be combined with --many: all lines would share the key."
        )
    check_name("task", task)
    _delivery(Delivery(), **options)  # Wrong options are reported without a database.
    check_args(args or "[]")
    check_kwargs(kwargs or "{}")
    settings = resolve({"database_url": url, "app": app}).settings
    loaded = None if settings.app is None else LoadedApp(settings.app)
    chosen = None if loaded is None else loaded.choose(task, version)
    given, schema = (None, None) if loaded is None else (loaded.url, loaded.schema)
    with open_app(settings.database_url or given, schema=settings.schema or schema) as opened:
        name_database(opened.store)
        if chosen is None:
            known = opened.store.all(queries.announced_tasks())
            chosen = announced(named_task(task, version, known))
        delivery = _delivery(chosen.delivery, **options)
        limit = settings.payload_limit(delivery.queue)
        writer = Writer(chosen, args or "[]", delivery, limit=limit)
        if chosen.warning and not as_json:
            click.echo(f"byrote: {one_line(chosen.warning)}", err=True)
        if many is not None:
            _accept_all(opened, writer.lines(many), used=_used(chosen, delivery), as_json=as_json)
            return
        spec = writer.spec(kwargs or "{}")
        accept(opened, spec, wait, used=_used(chosen, spec.delivery), as_json=as_json)


def accept(
    app: App,
    spec: Spec,
    wait: timedelta | None,
    *,
    used: Mapping[str, Any] = MappingProxyType({}),
    as_json: bool,
) -> None:
    """Enqueue a spec and print the run's id, or its result with `wait`; `used` is for JSON."""
    if len(spec.text) > PAYLOAD_LARGE and not as_json:
        size = f"{len(spec.text):,} characters"
        click.echo(f"byrote: a spec of {size} slows the queue; pass a reference instead.", err=True)
    run_id = new_id()
    holder = app.store.accept([(run_id, spec)]).instead.get(run_id)
    if holder is not None and not as_json:
        message = "a run with this unique key has not ended; nothing new was enqueued."
        click.echo(f"byrote: {message}", err=True)
    created = {} if spec.delivery.unique_key is None else {"created": holder is None}
    print_result(app, holder or run_id, wait, as_json=as_json, more={**used, **created})


def _delivery(
    own: Delivery,
    *,
    attempts: int | None,
    labels: tuple[tuple[str, str], ...],
    run_after: datetime | timedelta | None,
    unique_key: str | None,
    **given: Any,
) -> Delivery:
    """The task's own delivery options, with those of the command line in their place."""
    changed = {name: value for name, value in given.items() if value is not None}
    if attempts is not None:
        once = attempts == 1 and own.retry == ONCE
        base = Retry() if own.retry == ONCE else own.retry
        changed["retry"] = ONCE if once else msgspec.structs.replace(base, attempts=attempts)
    return msgspec.structs.replace(
        own,
        run_after=run_after,
        unique_key=unique_key,
        labels={**(own.labels or {}), **dict(labels)} or None,
        **changed,
    )


def _used(task: ChosenTask, delivery: Delivery) -> dict[str, Any]:
    """The fields of the JSON that show what a run was enqueued with."""
    timeout = delivery.timeout
    return {
        "task": task.name,
        "version": task.version,
        "queue": delivery.queue,
        "priority": delivery.priority,
        "max_attempts": delivery.retry.attempts,
        "timeout_s": None if timeout is None else timeout.total_seconds(),
        "labels": delivery.labels or {},
        "policy": task.source,
        "warning": task.warning or None,
    }


def _accept_all(app: App, specs: Iterator[Spec], *, used: dict[str, Any], as_json: bool) -> None:
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
            batches = bulk.batches(numbered)
            instead = bulk.enqueue_all(connection, batches, app.store.named_schema)
    except psycopg.OperationalError as error:
        raise unreachable(app.address, error) from error
    accepted = next(counter) - len(instead)
    if as_json:
        print_json({"accepted": accepted, **used})
    else:
        click.echo(f"{accepted:,} runs accepted.")
