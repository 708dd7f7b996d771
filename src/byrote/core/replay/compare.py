# SPDX-License-Identifier: MIT
"""Differences between two runs, part by part."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from byrote.core.json.codec import unpack
from byrote.core.json.diff import Changes, diff
from byrote.core.ports.replies import StepRow
from byrote.core.replay.provenance import provenance_diff
from byrote.core.run import Run

type ProvenanceDoc = Mapping[str, Any] | None


class Comparison(msgspec.Struct, frozen=True):
    """The differences of two runs; an empty part is the same in both."""

    spec: Changes
    delivery: Changes
    provenance: Changes
    steps: Changes
    """The steps and their results."""
    result: Changes
    execution: Changes
    """Worker, attempts and timings; rarely the same."""

    @property
    def parts(self) -> dict[str, Changes]:
        """Every part by its name, in the order people read them."""
        return msgspec.structs.asdict(self)


def compare(
    old: Run,
    new: Run,
    *,
    provenances: tuple[ProvenanceDoc, ProvenanceDoc] = (None, None),
    steps: tuple[Sequence[StepRow], Sequence[StepRow]] = ((), ()),
) -> Comparison:
    """Compare two runs; `provenances` are of their last attempts, `steps` their ledgers."""
    return Comparison(
        spec=diff(unpack(old.spec_json), unpack(new.spec_json)),
        delivery=diff(_delivery(old), _delivery(new)),
        provenance=provenance_diff(
            *provenances, task=f"{new.task}@{new.version}", task_old=f"{old.task}@{old.version}"
        ),
        steps=diff(_ledger(steps[0]), _ledger(steps[1])),
        result=result_diff(old, new),
        execution=diff(_execution(old), _execution(new)),
    )


def _ledger(steps: Sequence[StepRow]) -> dict[str, Any]:
    """Steps by their numbers, as errors and `runs show` name them."""
    return {str(step.sequence): _step(step) for step in steps}


def _step(step: StepRow) -> dict[str, Any]:
    view: dict[str, Any] = {"kind": step.kind, "name": step.name}
    if step.open:
        return {**view, "open": True}
    return {**view, "result": None if step.result_json is None else unpack(step.result_json)}


def result_diff(old: Run, new: Run) -> Changes:
    """Returns the differences in status, result and last error of two runs."""
    return diff(_result(old), _result(new))


def _delivery(run: Run) -> dict[str, Any]:
    return {
        "queue": run.queue,
        "priority": run.priority,
        "max_attempts": run.max_attempts,
        "timeout_s": None if run.timeout is None else run.timeout.total_seconds(),
        "retry": None if run.retry_json is None else unpack(run.retry_json),
        "labels": run.labels,
    }


def _result(run: Run) -> dict[str, Any]:
    view: dict[str, Any] = {"status": str(run.status)}
    if run.result_json is not None:
        view["result"] = run.result
    elif run.faults:
        last = run.faults[-1]
        view["error"] = {name: last.get(name) for name in ("kind", "type", "message")}
    return view


def _execution(run: Run) -> dict[str, Any]:
    return {
        "worker": run.worker_ids[-1] if run.worker_ids else None,
        "attempts": run.attempts,
        "now": run.as_of.isoformat(),
        "waited_s": _between(run.enqueued_at, run.started_at),
        "took_s": _between(run.last_attempted_at, run.finished_at),
        "usage": {k: v for k, v in run.usage[-1].items() if k != "attempt"} if run.usage else None,
    }


def _between(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None or end is None else round((end - begin).total_seconds(), 6)
