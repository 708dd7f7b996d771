# SPDX-License-Identifier: MIT
"""From counts by bucket to rates and percentiles."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from byrote.store.looking import Tally
from byrote.wire.messages import Percentiles, TaskStats

ERRORS_MAX = 20
"""Classes of errors told of one task, the most frequent first."""


def task_stats(tallies: Sequence[Tally], window_s: float) -> list[TaskStats]:
    """What each task did in each queue."""
    found: dict[tuple[str, str, int], list[Tally]] = defaultdict(list)
    for tally in tallies:
        found[tally.queue, tally.task, tally.version].append(tally)
    return [_one(key, of_task, window_s) for key, of_task in found.items()]


def _one(key: tuple[str, str, int], tallies: Sequence[Tally], window_s: float) -> TaskStats:
    plain = {tally.measure: tally.n for tally in tallies if tally.measure not in {"wait", "run"}}
    ended = sum(plain.get(kind, 0) for kind in ("Succeeded", "Failed", "Cancelled"))
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
        enqueued=plain.get("Enqueued", 0),
        succeeded=plain.get("Succeeded", 0),
        retried=plain.get("Retried", 0),
        failed=plain.get("Failed", 0),
        cancelled=plain.get("Cancelled", 0),
        lost=plain.get("Lost", 0) + plain.get("Crashed", 0),
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
