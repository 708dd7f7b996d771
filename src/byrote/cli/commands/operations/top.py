# SPDX-License-Identifier: MIT
"""`byrote top`: queues, tasks and workers, live, from the database or from a service."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import click
import msgspec

from byrote.cli.database import open_store
from byrote.cli.options import DurationParam, database_options
from byrote.cli.output.tables import print_json, print_table
from byrote.core.duration import spoken
from byrote.core.errors import MissingExtra
from byrote.core.progress import Progress
from byrote.core.progress import spoken as words
from byrote.service.routes.stats import stats_of
from byrote.store import queries
from byrote.store.runners.sync import Store
from byrote.wire.messages import Percentiles, QueueView, StatsReply, WorkersReply, WorkerView
from byrote.wire.progress import UnderWayView

QUEUES = ("queue", "state", "depth", "ready", "waiting", "running", "dead", "oldest")
TASKS = ("task", "queue", "depth", "running", "/s", "ok", "retried", "failed", "wait p50", "p95",
         "run p50", "p95", "errors")  # fmt: skip
WORKERS = ("worker", "host", "running", "finished", "queues", "state")
UNDER_WAY = ("run", "task", "queue", "progress", "done about")
CLEAR = "\033[H\033[2J\033[3J"
SHOWN = 15

type Look = Callable[[], tuple[StatsReply, WorkersReply]]


@click.command(epilog="Example: byrote top --service https://queue.example --every 5s")
@database_options
@click.option("--service", metavar="URL", help="Ask a service; BYROTE_SERVICE_TOKEN has its token.")
@click.option(
    "--window",
    type=DurationParam(),
    default="5m",
    show_default=True,
    help="Time span of the rates.",
)
@click.option(
    "--every", type=DurationParam(), default="2s", show_default=True, help="Refresh interval."
)
@click.option("--once", is_flag=True, help="Print once and exit.")
def top(
    *,
    url: str | None,
    as_json: bool,
    service: str | None,
    window: timedelta,
    every: timedelta,
    once: bool,
) -> None:
    """Watch queues, tasks, workers, and runs that report progress, until Ctrl-C.

    Any worker or service counts rates and times; while none runs, they do not change.
    With --json, prints one object per refresh.
    """
    with _source(url, service, window) as look:
        while True:
            stats, workers = look()
            if as_json:
                print_json({"stats": msgspec.to_builtins(stats), **msgspec.to_builtins(workers)})
            else:
                _show(stats, workers, live=not once and sys.stdout.isatty())
            if once:
                return
            time.sleep(every.total_seconds())


@contextmanager
def _source(url: str | None, service: str | None, window: timedelta) -> Iterator[Look]:
    if service is not None:
        with _service(service, window) as look:
            yield look
        return
    with open_store(url) as store:
        yield lambda: _read(store, window)


def _read(store: Store, window: timedelta) -> tuple[StatsReply, WorkersReply]:
    stats = stats_of(
        window,
        duties=store.all(queries.counters()),
        queues=store.all(queries.depths()),
        depths=store.all(queries.task_depths()),
        tallies=store.all(queries.stats(window=window)),
        telling=store.all(queries.progressing(limit=SHOWN)),
    )
    rows = store.all(queries.workers())
    return stats, WorkersReply(workers=[WorkerView(**msgspec.structs.asdict(row)) for row in rows])


@contextmanager
def _service(url: str, window: timedelta) -> Iterator[Look]:
    try:
        from byrote.sdk.client import Client  # noqa: PLC0415 -- an extra.
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{error.name} is not installed; run `pip install 'byrote[client]'`, "
            "or leave --service out to read the database."
        ) from None
    with Client(url) as client:
        yield lambda: (
            client.stats(window=spoken(window)),
            WorkersReply(workers=client.workers()),
        )


def _show(stats: StatsReply, workers: WorkersReply, *, live: bool) -> None:
    if live:
        click.echo(CLEAR, nl=False)
    counted = "no statistics yet" if stats.as_of is None else f"as of {stats.as_of:%H:%M:%S}Z"
    click.echo(f"Byrote, last {spoken(timedelta(seconds=stats.window_s))}, {counted}\n")
    print_table(QUEUES, map(_queue, stats.queues[:SHOWN]), empty="No queue has been used yet.")
    click.echo()
    busiest = sorted(stats.tasks, key=lambda task: (-task.per_s, -(task.depth or 0)))[:SHOWN]
    rows = [
        (
            f"{task.task}@{task.version}", task.queue, _known(task.depth), _known(task.running),
            f"{task.per_s:g}", task.succeeded, task.retried, task.failed,
            *_times(task.wait_s), *_times(task.run_s),
            ", ".join(f"{name} {n}" for name, n in list(task.errors.items())[:3]),
        )
        for task in busiest
    ]  # fmt: skip
    print_table(TASKS, rows, empty="No statistics in this window.")
    if stats.under_way:
        click.echo()
        print_table(UNDER_WAY, map(_under_way, stats.under_way[:SHOWN]), empty="")
    click.echo()
    print_table(WORKERS, map(_worker, workers.workers[:SHOWN]), empty="No workers.")


def _queue(queue: QueueView) -> tuple[object, ...]:
    age = queue.oldest_ready_s
    oldest = "" if age is None else spoken(timedelta(seconds=max(round(age), 0)))
    state = "open" if queue.paused_at is None else "paused"
    counts = (queue.ready, queue.waiting, queue.running, queue.dead)
    return queue.queue, state, _known(queue.depth), *counts, oldest


def _known(count: int | None) -> object:
    return "" if count is None else count


def _times(found: Percentiles) -> tuple[str, str]:
    return _time(found.p50), _time(found.p95)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _worker(worker: WorkerView) -> tuple[object, ...]:
    state = "gone" if not worker.alive else "stopping" if worker.stopping else "ok"
    queues = ",".join(worker.queues)[:40]
    return worker.worker, worker.host, worker.running, worker.finished, queues, state


def _under_way(row: UnderWayView) -> tuple[object, ...]:
    progress = Progress(**msgspec.structs.asdict(row.progress))
    return row.id, row.task, row.queue, words(progress)[:80], progress.eta
