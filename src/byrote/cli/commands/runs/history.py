# SPDX-License-Identifier: MIT
"""Earlier states from the log: `--at`, a run's history, queues and workers."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import msgspec

from byrote.assembly.clock import now
from byrote.cli.database import open_store, whole_id
from byrote.cli.options import RunId, database_options
from byrote.cli.output.tables import moment, print_json, print_table
from byrote.core.duration import duration, spoken
from byrote.core.errors import NotThereThen, RunNotFound
from byrote.core.log.asof import as_it_was
from byrote.core.log.fold import BLANK, RunState, fold, fold_all
from byrote.core.log.kinds import EventKind
from byrote.core.log.record import LogEntry
from byrote.core.run import Run
from byrote.store import queries
from byrote.store.queries.log import Counted, WorkerThen
from byrote.store.runners.sync import Store

HISTORY_HEADS = ("move", "at", "event", "attempt", "worker", "status", "details")
QUEUE_HEADS = ("queue", "ready", "waiting", "running", "dead", "oldest ready", "run by")
WORKER_HEADS = ("worker", "running", "claimed", "ended", "lost", "last event")


class Past(click.ParamType[datetime]):
    """A moment that has passed: a time, in UTC unless it has an offset, or `10m` ago."""

    name = "time|duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Read how long ago, else a time."""
        try:
            return now() - duration(value)
        except ValueError:
            pass
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is neither a time like '2026-11-10 17:00' nor a while ago like 10m.",
                param,
                ctx,
            )
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


at_option = click.option("--at", type=Past(), help="As it was then; in UTC, or `10m` for ago.")


def run_then(store: Store, run: Run, at: datetime) -> Run:
    """Return the run as it was; raises NotThereThen if the log has no earlier event of it."""
    logged = store.all(queries.run_history(run.id, at=at))
    if not logged:
        raise NotThereThen(run.id, at)
    return as_it_was(run, fold_all(logged), at)


@click.command(epilog="Example: byrote runs history 01932c4e-8d5b-7a90-b1c2-3d4e5f607182")
@click.argument("begun", metavar="ID", type=RunId())
@database_options
@at_option
def history(begun: str, *, url: str | None, as_json: bool, at: datetime | None) -> None:
    """Show what happened to a run, step by step, and how each step left it.

    The log is kept for 30 days unless `keep_events` is set; older steps are deleted.
    """
    with open_store(url) as store:
        logged = store.all(queries.run_history(whole_id(store, begun), at=at))
    if not logged:
        raise RunNotFound(begun)
    steps = list(_steps(logged))
    if as_json:
        for event, state in steps:
            print_json({**msgspec.structs.asdict(event), "then": msgspec.structs.asdict(state)})
    else:
        print_table(HISTORY_HEADS, (_line(*step) for step in steps), empty="")


def _steps(logged: Iterable[LogEntry]) -> Iterable[tuple[LogEntry, RunState]]:
    state = BLANK
    for event in logged:
        state = fold(state, event)
        yield event, state


def _line(logged: LogEntry, then: RunState) -> tuple[object, ...]:
    at = f"{logged.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    status = then.status or "?"
    return (
        logged.move,
        at,
        logged.kind,
        logged.attempt,
        logged.worker or "",
        status,
        _details(logged, then),
    )


def _details(logged: LogEntry, then: RunState) -> str:
    data, parts = logged.data or {}, []
    if logged.leased_until is not None:
        parts.append(f"lease until {moment(logged.leased_until)}")
    if data.get("type"):
        parts.append(str(data["type"]))
    if then.status == "WAITING" and then.due is not None:
        parts.append(f"{then.wait_reason} until {moment(then.due)}")
    if logged.kind in {EventKind.LOST, EventKind.CRASHED}:
        parts.append(f"loss {then.losses}")
    return ", ".join(parts)


def show_queues_at(store: Store, at: datetime, *, as_json: bool) -> None:
    """Print the counts of each queue at a moment, and the workers that ran its runs."""
    by_queue: dict[str, list[Counted]] = {}
    for counted in store.all(queries.runs_at(at)):
        by_queue.setdefault(counted.queue, []).append(counted)
    if as_json:
        for queue, parts in by_queue.items():
            print_json(_queue_fields(queue, parts, at))
        return
    rows = (_queue_row(_queue_fields(queue, parts, at)) for queue, parts in by_queue.items())
    print_table(QUEUE_HEADS, rows, empty="No queue held anything then.")


def _queue_fields(queue: str, parts: Sequence[Counted], at: datetime) -> dict[str, Any]:
    def total(status: str) -> int:
        return sum(part.runs for part in parts if part.status == status)

    ready = [part.since for part in parts if part.status == "READY"]
    return {
        "queue": queue,
        "at": at,
        "ready": total("READY"),
        "waiting": total("WAITING"),
        "running": total("RUNNING"),
        "dead": total("FAILED"),
        "oldest_ready_s": (at - min(ready)).total_seconds() if ready else None,
        "run_by": {part.worker or "?": part.runs for part in parts if part.status == "RUNNING"},
    }


def _queue_row(fields: dict[str, Any]) -> tuple[object, ...]:
    age = fields["oldest_ready_s"]
    oldest = "" if age is None else spoken(timedelta(seconds=max(round(age), 0)))
    by = ", ".join(f"{worker}: {runs}" for worker, runs in fields["run_by"].items())
    counts = (fields[name] for name in ("ready", "waiting", "running", "dead"))
    return fields["queue"], *counts, oldest, by


def show_workers_at(store: Store, at: datetime, *, as_json: bool) -> None:
    """Print the workers of a moment, from the log."""
    running: dict[str, int] = {}
    for counted in store.all(queries.runs_at(at)):
        if counted.status == "RUNNING" and counted.worker is not None:
            running[counted.worker] = running.get(counted.worker, 0) + counted.runs
    seen = {row.worker: row for row in store.all(queries.workers_at(at))}
    for name in running.keys() - seen.keys():
        # It holds a run that it neither claimed nor renewed within the hour.
        seen[name] = WorkerThen(name, at, at, 0, 0, 0)
    rows = [(seen[name], running.get(name, 0)) for name in sorted(seen)]
    if as_json:
        for worker, count in rows:
            print_json({**msgspec.structs.asdict(worker), "at": at, "running": count})
    else:
        cells = ((w.worker, count, w.claimed, w.ended, w.lost, w.last_at) for w, count in rows)
        print_table(
            WORKER_HEADS, cells, empty="The log has no event of a worker in the hour before."
        )


def known_run(store: Store, begun: str) -> Run:
    """Return the current run whose id has this prefix."""
    run = store.first(queries.run(whole_id(store, begun)))
    if run is None:
        raise RunNotFound(begun)
    return run
