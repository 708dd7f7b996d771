# SPDX-License-Identifier: MIT
"""Statistics: rates and percentiles from counts by bucket, and the current depths."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import msgspec

from byrote.core.duration import duration
from byrote.core.verdict import STATISTICS
from byrote.service.views import queue_view
from byrote.store import queries
from byrote.store.queries.queues import DEPTH_MAX, Depth, Tally
from byrote.store.queries.steps import UnderWay
from byrote.store.rows import QueueRow
from byrote.wire.messages import Percentiles, StatsReply, TaskStats
from byrote.wire.problems import Invalid
from byrote.wire.progress import under_way_of

if TYPE_CHECKING:
    # `byrote top` computes statistics without the packages of the service.
    from byrote.service.http.request import RequestContext

WINDOW_MIN, WINDOW_MAX = timedelta(minutes=1), timedelta(days=2)
ERRORS_MAX = 20
"""Classes of errors listed for one task, the most frequent first."""


type Key = tuple[str, str, int]


def stats_of(
    window: timedelta,
    *,
    duties: Sequence[tuple[str, str, datetime | None]],
    queues: Sequence[QueueRow],
    depths: Sequence[Depth],
    tallies: Sequence[Tally],
    telling: Sequence[UnderWay],
) -> StatsReply:
    """Queues as they are now, and activity of tasks within a window."""
    counted = {duty: at for duty, _, at in duties}
    known = depths if "depths" in counted else None
    return StatsReply(
        window_s=window.total_seconds(),
        as_of=counted.get("stats"),
        queues=[queue_view(row) for row in queues],
        count_max=DEPTH_MAX,
        tasks=task_stats(tallies, known, window.total_seconds()),
        under_way=[under_way_of(*msgspec.structs.astuple(row)) for row in telling],
    )


def task_stats(
    tallies: Sequence[Tally], depths: Sequence[Depth] | None, window_s: float
) -> list[TaskStats]:
    """Depth and activity of each task by queue; `depths` is None if they were never counted."""
    by_task = {(depth.queue, depth.task, depth.version): depth for depth in depths or ()}
    did: dict[Key, list[Tally]] = defaultdict(list)
    for tally in tallies:
        did[tally.queue, tally.task, tally.version].append(tally)
    found = [_one(key, did[key], window_s) for key in sorted({*by_task, *did})]
    if depths is None:
        return found
    return [_with_depth(task, by_task.get((task.queue, task.task, task.version))) for task in found]


def _with_depth(task: TaskStats, depth: Depth | None) -> TaskStats:
    if depth is None:
        return msgspec.structs.replace(task, depth=0, running=0)
    return msgspec.structs.replace(
        task, depth=depth.depth, running=depth.running, oldest_ready_s=depth.oldest_ready_s
    )


def _one(key: Key, tallies: Sequence[Tally], window_s: float) -> TaskStats:
    plain = {tally.measure: tally.n for tally in tallies if tally.measure not in {"wait", "run"}}
    counts = dict.fromkeys(STATISTICS.values(), 0)
    for kind, statistic in STATISTICS.items():
        counts[statistic] += plain.get(kind, 0)
    ended = counts["succeeded"] + counts["failed"] + counts["cancelled"]
    errors = {
        measure.removeprefix("error "): n
        for measure, n in plain.items()
        if measure.startswith("error ")
    }
    often = sorted(errors.items(), key=lambda item: -item[1])[:ERRORS_MAX]
    return TaskStats(
        queue=key[0],
        task=key[1],
        version=key[2],
        **counts,
        per_s=round(ended / window_s, 3),
        wait_s=percentiles({t.bucket: t.n for t in tallies if t.measure == "wait"}),
        run_s=percentiles({t.bucket: t.n for t in tallies if t.measure == "run"}),
        errors=dict(often),
    )


def percentiles(buckets: Mapping[int, int]) -> Percentiles:
    """The middle of the bucket that each percentile falls into."""
    return Percentiles(
        p50=_percentile(buckets, 0.5),
        p95=_percentile(buckets, 0.95),
        p99=_percentile(buckets, 0.99),
    )


def _percentile(buckets: Mapping[int, int], share: float) -> float | None:
    total, passed = sum(buckets.values()), 0
    for bucket in sorted(buckets):
        passed += buckets[bucket]
        if passed >= share * total:
            return seconds_of(bucket)
    return None


def seconds_of(bucket: int) -> float:
    """The seconds that stand for a bucket: never more than a tenth off."""
    micros: float = 2.0 ** ((bucket + 0.5) / 4)
    return round(micros / 1e6, 6)


class Window(msgspec.Struct, frozen=True):
    """The length of the window."""

    window: Annotated[
        str, msgspec.Meta(max_length=40, description="One minute to two days, as in `5m`.")
    ] = "5m"


async def stats(call: "RequestContext") -> StatsReply:
    """Queues as they are now, and activity of tasks within a window, from running counts."""
    try:
        window = duration(call.query.window)
    except ValueError as error:
        raise Invalid(f"window: {error}") from None
    if not WINDOW_MIN <= window <= WINDOW_MAX:
        raise Invalid("window: choose one between 1m and 2d.")
    reads = call.service.reads
    queues, tasks = call.grant.queues, call.grant.tasks
    return stats_of(
        window,
        duties=await reads.all(queries.counters()),
        queues=await reads.all(queries.depths(queues=queues, tasks=tasks)),
        depths=await reads.all(queries.task_depths(queues=queues, tasks=tasks)),
        tallies=await reads.all(queries.stats(window=window, queues=queues, tasks=tasks)),
        telling=await reads.all(queries.progressing(queues=queues, tasks=tasks)),
    )
