# SPDX-License-Identifier: MIT
"""`byrote top`: queues, tasks and workers, live, from the database or from a service."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import click
import msgspec

from byrote.cli.database import open_store
from byrote.cli.options import DurationParam, database_options
from byrote.cli.output.tables import print_json, print_table
from byrote.core.duration import spoken
from byrote.core.errors import BadOption, ServiceUnreachable
from byrote.core.progress import Progress
from byrote.core.progress import spoken as words
from byrote.service.routes.stats import stats_of
from byrote.store import queries
from byrote.store.runners.sync import Store
from byrote.wire.messages import Percentiles, QueueView, StatsReply, WorkersReply, WorkerView
from byrote.wire.problems import error_of
from byrote.wire.progress import UnderWayView

QUEUES = ("queue", "state", "depth", "ready", "waiting", "running", "dead", "oldest")
TASKS = ("task", "queue", "depth", "running", "/s", "ok", "retried", "failed", "wait p50", "p95",
         "run p50", "p95", "errors")  # fmt: skip
WORKERS = ("worker", "host", "running", "finished", "queues", "state")
UNDER_WAY = ("run", "task", "queue", "progress", "done about")
CLEAR = "\033[H\033[2J\033[3J"
SHOWN = 15
TIMEOUT_S = 10.0

type Look = Callable[[], tuple[StatsReply, WorkersReply]]


@click.command(epilog="Example: byrote top --service https://queue.example --every 5s")
@database_options
@click.option("--service", metavar="URL", help="Ask a service; its token is in BYROTE_TOKEN.")
@click.option(
    "--window", type=DurationParam(), default="5m", show_default=True, help="Of the rates."
)
@click.option(
    "--every", type=DurationParam(), default="2s", show_default=True, help="How often to look."
)
@click.option("--once", is_flag=True, help="Look once.")
def top(
    *,
    url: str | None,
    as_json: bool,
    service: str | None,
    window: timedelta,
    every: timedelta,
    once: bool,
) -> None:
    """Watch queues, tasks, workers, and runs that tell how far they are, until Ctrl-C.

    Rates and times are counted by services as things happen; without one running they stand still.
    With --json it prints one object per look.
    """
    with _place(url, service, window) as look:
        while True:
            stats, workers = look()
            if as_json:
                print_json({"stats": msgspec.to_builtins(stats), **msgspec.to_builtins(workers)})
            else:
                _show(stats, workers, live=not once and sys.stdout.isatty())
            if once or threading.Event().wait(every.total_seconds()):
                return


@contextmanager
def _place(url: str | None, service: str | None, window: timedelta) -> Iterator[Look]:
    if service is not None:
        yield lambda: _ask(service, window)
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


def _ask(service: str, window: timedelta) -> tuple[StatsReply, WorkersReply]:
    stats = msgspec.json.decode(
        _get(service, f"/v1/stats?window={spoken(window)}"), type=StatsReply
    )
    return stats, msgspec.json.decode(_get(service, "/v1/workers"), type=WorkersReply)


def _get(service: str, path: str) -> bytes:
    if urlsplit(service).scheme not in {"http", "https"}:
        raise BadOption(f"{service!r} is no address of a service; write https://host:port.")
    token = os.environ.get("BYROTE_TOKEN", "")
    asked = Request(service.rstrip("/") + path, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 -- http or https: seen above.
    try:
        with urlopen(asked, timeout=TIMEOUT_S) as answer:  # noqa: S310 -- the same.
            return bytes(answer.read())
    except HTTPError as error:
        raise error_of(error.code, error.read()) from None
    except (URLError, TimeoutError) as error:
        raise ServiceUnreachable(f"{service} did not answer: {error}") from None


def _show(stats: StatsReply, workers: WorkersReply, *, live: bool) -> None:
    if live:
        click.echo(CLEAR, nl=False)
    counted = "never" if stats.as_of is None else f"{stats.as_of:%H:%M:%S}Z"
    click.echo(f"Byrote, the last {spoken(timedelta(seconds=stats.window_s))}, as of {counted}\n")
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
    print_table(TASKS, rows, empty="Nothing was counted in this window.")
    if stats.under_way:
        click.echo()
        print_table(UNDER_WAY, map(_under_way, stats.under_way[:SHOWN]), empty="")
    click.echo()
    print_table(WORKERS, map(_worker, workers.workers[:SHOWN]), empty="There are no workers.")


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
    told = Progress(**msgspec.structs.asdict(row.progress))
    return row.run, row.task, row.queue, words(told)[:80], told.eta
