# SPDX-License-Identifier: MIT
"""`byrote schedules`: what runs periodically; add, pause, resume, run now, remove."""

from datetime import timedelta
from itertools import islice
from typing import Any

import click
import msgspec

from byrote.assembly.settings import resolve
from byrote.cli.commands.runs.enqueue import accept
from byrote.cli.database import open_app, open_store
from byrote.cli.lazy import ListingGroup
from byrote.cli.options import DurationParam, Label, MomentParam, database_options, wait_option
from byrote.cli.output.tables import print_fields, print_json, print_table
from byrote.cli.support.spec_writer import Writer
from byrote.cli.support.task_choice import ChosenTask
from byrote.core.duration import spoken
from byrote.core.errors import BadOption, UnknownSchedule
from byrote.core.policy import ONCE, Retry
from byrote.core.schedule.schedule import StoredSchedule, make_schedule, next_tick
from byrote.core.schedule.timing import ticks_after
from byrote.core.spec import Delivery, Spec, check_name
from byrote.core.text.printable import one_line
from byrote.store import queries
from byrote.store.runners.sync import Store

HEADS = ("name", "state", "timing", "zone", "task", "queue", "next", "last", "runs", "skipped")
SHOWN = 5
"""Ticks to come that are shown of a schedule."""
NAME = click.argument("name")


@click.group(cls=ListingGroup, epilog="Example: byrote schedules --json")
def schedules() -> None:
    """List, add, pause and remove periodic tasks. Without a command, list them.

    Those that an app defines (`app.schedule(...)`) are here once one of its workers has started.
    """


@schedules.command("list", epilog="Example: byrote schedules list")
@database_options
def list_schedules(*, url: str | None, as_json: bool) -> None:
    """List every schedule with its next tick."""
    with open_store(url) as store:
        found = store.all(queries.schedules())
    if as_json:
        for planned in found:
            print_json(_fields(planned))
    else:
        print_table(HEADS, map(_row, found), empty="No schedules yet; see `byrote schedules add`.")


@schedules.command(epilog="Example: byrote schedules show nightly")
@NAME
@database_options
def show(name: str, *, url: str | None, as_json: bool) -> None:
    """Show one schedule, what it runs, and its next ticks."""
    with open_store(url) as store:
        planned = _known(store, name)
    fields = {**_fields(planned), "ticks": _coming(planned)}
    if as_json:
        print_json(fields)
        return
    texts = {key: value for key, value in fields.items() if key not in {"ticks", "jitter_s"}}
    texts["jitter"] = spoken(timedelta(seconds=fields["jitter_s"]))
    print_fields(
        {
            key: _text(value) if isinstance(value, msgspec.Raw) else value
            for key, value in texts.items()
        }
    )
    for tick in _coming(planned):
        click.echo(f"then {tick:%Y-%m-%dT%H:%M:%SZ %A}")


@schedules.command(
    epilog="""\b
Examples: byrote schedules add nightly report '{"days": 1}' --cron '0 3 * * *' --zone Europe/Berlin
          byrote schedules add pulse ping --every 30s --queue health
          byrote schedules add reminder send_email '{"to": "a@b.example"}' --at 2030-01-31T09:00Z"""
)
@NAME
@click.argument("task")
@click.argument("kwargs", metavar="[JSON]", required=False)
@database_options
@click.option("--cron", metavar="FIELDS", help="Five fields of cron, or @hourly, @daily, ...")
@click.option("--every", type=DurationParam(), help="Interval, counted from 1970: 30s, 10m, 6h.")
@click.option("--at", type=MomentParam(), help="Once: an ISO time, or after a delay like 10m.")
@click.option("--zone", default="UTC", show_default=True, help="The time zone of --cron.")
@click.option(
    "--jitter", type=DurationParam(), default=timedelta(), help="Spread ticks over this duration."
)
@click.option("--overlap", is_flag=True, help="Run even while an earlier run is unfinished.")
@click.option(
    "--catch-up",
    type=click.Choice(["one", "all", "none"]),
    default="one",
    show_default=True,
    help="Of ticks that were missed while no worker ran: the latest, all, or none.",
)
@click.option("--args", "args", metavar="JSON", help="Positional arguments, as a JSON array.")
@click.option("--queue", default="default", show_default=True)
@click.option("--priority", type=click.IntRange(-100, 100), default=0, help="Higher first.")
@click.option("--timeout", type=DurationParam(), help="Stop an attempt after this long.")
@click.option("--attempts", type=click.IntRange(1, 1000), default=1, help="Tries in all.")
@click.option("--label", "labels", type=Label(), multiple=True, help="May be given many times.")
@click.option("--version", type=click.IntRange(min=1), default=1, help="The task's version.")
@click.option("--replace", is_flag=True, help="Replace the schedule of this name.")
def add(
    name: str,
    task: str,
    kwargs: str | None,
    *,
    url: str | None,
    as_json: bool,
    replace: bool,
    **options: Any,
) -> None:
    """Enqueue a run of TASK with these keyword arguments at every tick.

    Use one of --cron, --every and --at. Any worker on this database enqueues the runs. The task's
    own queue, retries and timeout are known only to its app, so set them here.
    """
    with open_store(url) as store:
        now = store.all(queries.now())[0]
        timing = {key: options.pop(key) for key in ("cron", "every", "zone", "jitter", "catch_up")}
        timing |= {"at": _moment(options.pop("at"), now), "overlap": options.pop("overlap")}
        made = make_schedule(name, _spec(task, kwargs or "{}", **options), **timing)
        following = next_tick(made, after=now)
        if following is None:
            raise BadOption(f"{made.timing!r} is in the past.")
        if not store.all(queries.save_schedule(made, next_at=following, replace=replace)):
            raise BadOption(f"The schedule {name!r} exists; replace it with --replace.")
        _report(_known(store, name), as_json=as_json)


def _moment(at: Any, now: Any) -> Any:
    return now + at if isinstance(at, timedelta) else at


def _spec(
    task: str,
    kwargs: str,
    *,
    args: str | None,
    version: int,
    attempts: int,
    labels: tuple[tuple[str, str], ...],
    **delivery: Any,
) -> Spec:
    how = Delivery(
        retry=ONCE if attempts == 1 else Retry(attempts=attempts),
        labels=dict(labels) or None,
        **delivery,
    )
    limit = resolve().settings.payload_limit(how.queue)
    named = ChosenTask(name=check_name("task", task), version=version)
    return Writer(named, args or "[]", how, limit=limit).spec(kwargs)


@schedules.command(epilog="Example: byrote schedules pause nightly")
@NAME
@database_options
def pause(name: str, *, url: str | None, as_json: bool) -> None:
    """Stop a schedule from starting runs; running attempts continue."""
    with open_store(url) as store:
        _known(store, name)
        store.all(queries.pause_schedule(name))
        _report(_known(store, name), as_json=as_json)


@schedules.command(epilog="Example: byrote schedules resume nightly")
@NAME
@database_options
def resume(name: str, *, url: str | None, as_json: bool) -> None:
    """Let a schedule start runs again; ticks missed during the pause are skipped."""
    with open_store(url) as store:
        planned = _known(store, name)
        following = next_tick(planned.schedule, after=planned.now)
        store.all(queries.resume_schedule(name, next_at=following))
        _report(_known(store, name), as_json=as_json)


@schedules.command(epilog="Example: byrote schedules run nightly --wait=60")
@NAME
@database_options
@wait_option
def run(name: str, *, url: str | None, as_json: bool, wait: timedelta | None) -> None:
    """Start a run of a schedule now, besides its ticks, and print the run's id.

    While an earlier run is unfinished and runs may not overlap, that one's id is printed instead.
    """
    with open_app(url) as app:
        accept(app, _known(app.store, name).schedule.spec, wait, as_json=as_json)


@schedules.command(epilog="Example: byrote schedules remove nightly")
@NAME
@database_options
@click.option("--force", is_flag=True, help="Even if an app has defined it.")
def remove(name: str, *, url: str | None, as_json: bool, force: bool) -> None:
    """Delete a schedule; its runs stay."""
    with open_store(url) as store:
        if _known(store, name).origin == "code" and not force:
            raise BadOption(
                f"{name!r} was defined by an app, and a worker of that app brings it back when it "
                "starts. Pause it; or take it out of the code and then remove it with --force."
            )
        store.all(queries.delete_schedule(name))
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        click.echo(one_line(f"{name} is removed."))


def _known(store: Store, name: str) -> StoredSchedule:
    found = store.first(queries.schedules(name=name))
    if found is None:
        known = [planned.schedule.name for planned in store.all(queries.schedules())]
        raise UnknownSchedule(name, known)
    return found


def _report(planned: StoredSchedule, *, as_json: bool) -> None:
    if as_json:
        print_json(_fields(planned))
    elif planned.state == "on":
        due = f"{planned.next_at:%Y-%m-%dT%H:%M:%SZ}"
        click.echo(one_line(f"{planned.schedule.name} is due next at {due}."))
    else:
        click.echo(one_line(f"{planned.schedule.name} is {planned.state}."))


def _row(planned: StoredSchedule) -> tuple[object, ...]:
    schedule = planned.schedule
    return (
        schedule.name, planned.state, schedule.timing, schedule.zone, schedule.task, schedule.queue,
        None if planned.paused_at else planned.next_at, planned.last_at, planned.runs,
        planned.skipped,
    )  # fmt: skip


def _coming(planned: StoredSchedule) -> list[Any]:
    if planned.state != "on" or planned.next_at is None:
        return []
    schedule = planned.schedule
    later = ticks_after(schedule.timing, schedule.zone, planned.next_at)
    return [planned.next_at, *islice(later, SHOWN - 1)]


def _text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()


def _fields(planned: StoredSchedule) -> dict[str, Any]:
    """Everything of a schedule but its arguments' text, which is JSON already."""
    fields = msgspec.structs.asdict(planned.schedule)
    # A login that may not see arguments reads JSON's null.
    spec = msgspec.json.decode(fields.pop("spec_json"), type=dict[str, msgspec.Raw] | None) or {}
    retry = fields.pop("retry_json")
    limit_ms, jitter_us = fields.pop("timeout_ms"), fields.pop("jitter_us")
    return {
        "name": fields.pop("name"),
        "state": planned.state,
        **fields,
        "timeout_s": None if limit_ms is None else limit_ms / 1_000,
        "args": spec.get("args"),
        "kwargs": spec.get("kwargs"),
        "retry": None if retry is None else msgspec.Raw(retry.encode()),
        "jitter_s": jitter_us / 1_000_000,
        "overlap": planned.schedule.overlap,
        "origin": planned.origin,
        "next_at": planned.next_at,
        "last_at": planned.last_at,
        "last_run": planned.last_run,
        "runs": planned.runs,
        "skipped": planned.skipped,
        "paused_at": planned.paused_at,
        "fault": planned.fault,
    }
