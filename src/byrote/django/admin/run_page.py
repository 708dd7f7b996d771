# SPDX-License-Identifier: MIT
"""Reads everything about one run for its page: spec, attempts, result and history."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from django.db import OperationalError, transaction

from byrote.core.artifact import POSTGRES, ArtifactEntry
from byrote.core.json.diff import Change, diff
from byrote.core.ports.replies import StepRow
from byrote.core.replay.provenance import brief
from byrote.core.run import Run
from byrote.django import times
from byrote.django.admin import display, replays, timeline
from byrote.django.admin.run_list import CANCELED, PATIENCE
from byrote.django.backend.database import fetch
from byrote.store import queries
from byrote.store.queries.queues import why_waiting
from byrote.store.rows import Environment, Printed, ReplayRow

ATTEMPTS_SHOWN = 50
REPLAYS_SHOWN = 20
STEPS_SHOWN = 200
CHANGES_SHOWN = 20
EVENTS_SHOWN = 500


class AttemptView(msgspec.Struct, frozen=True):
    """One attempt with its error, output, environment and usage."""

    number: int
    worker: str | None
    fault: Mapping[str, Any] | None
    output: Printed | None
    environment: str | None
    usage: str
    verdict: str


class ArtifactRow(msgspec.Struct, frozen=True):
    """An artifact; `here` if its content is in the database and can be downloaded."""

    entry: ArtifactEntry
    here: bool


def read(database: str, run: Run) -> dict[str, Any]:
    """The template context of a run's page."""
    numbers = sorted({number for number in run.provenance if number is not None})
    environments = {found.id: found for found in fetch(database, queries.provenances(numbers))}
    stored = fetch(database, queries.artifacts(run.id))
    found = replays.verdicts_on(database, run)
    return {
        "run": run,
        "spec": display.document(run.spec_json),
        "arguments": display.document(_arguments(run)),
        "result": display.document(run.result_json),
        "retry": None if run.retry_json in {None, "{}"} else display.document(run.retry_json),
        "attempts": _attempts(run, fetch(database, queries.outputs(run.id)), environments),
        "attempts_hidden": max(run.attempts - ATTEMPTS_SHOWN, 0),
        "environments": _documents(environments.values()),
        "steps": _steps(fetch(database, queries.steps([run.id]))),
        "artifacts": [ArtifactRow(entry, entry.location == POSTGRES) for entry in stored],
        "history": _history(database, run),
        "original": _original(database, run),
        "verdicts": found,
        "replays": _replays(database, run, {verdict.run_id for verdict in found}),
        "took": _took(run),
        "why": "".join(one.why for one in fetch(database, why_waiting(run.id))),
    }


def _arguments(run: Run) -> str:
    try:
        spec = msgspec.json.decode(run.spec_json, type=dict[str, msgspec.Raw])
        return f'{{"args":{_raw(spec["args"])},"kwargs":{_raw(spec["kwargs"])}}}'
    except (msgspec.MsgspecError, KeyError):
        return run.spec_json  # The page of an altered row must still open.


def _raw(part: msgspec.Raw) -> str:
    return bytes(part).decode()


def _attempts(
    run: Run, printed: Sequence[Printed], environments: Mapping[int, Environment]
) -> list[AttemptView]:
    faults = {fault.get("attempt"): fault for fault in run.faults}
    outputs = {output.attempt: output for output in printed}
    usages = {usage.get("attempt"): usage for usage in run.usage if usage}
    first = max(run.attempts - ATTEMPTS_SHOWN, 0) + 1
    found = []
    for number in range(first, run.attempts + 1):
        there = environments.get(_at(run.provenance, number) or 0)
        found.append(
            AttemptView(
                number,
                _at(run.worker_ids, number),
                faults.get(number),
                outputs.get(number),
                None if there is None else brief(there.doc, f"{run.task}@{run.version}"),
                timeline.usage_of(usages.get(number)),
                _verdict(run, number, faults),
            )
        )
    return found[::-1]


def _at(parts: Sequence[Any], number: int) -> Any:
    return parts[number - 1] if number <= len(parts) else None


def _verdict(run: Run, number: int, faults: Mapping[Any, Any]) -> str:
    if number in faults:
        return "failed"
    if number < run.attempts or run.status in {"WAITING", "READY"}:
        return "not counted"
    return run.status.lower()


def _documents(found: Any) -> list[tuple[str, display.Document | None]]:
    return [(each.hash, display.document(msgspec.json.encode(each.doc).decode())) for each in found]


def _steps(steps: Sequence[StepRow]) -> list[tuple[StepRow, display.Document | None]]:
    return [(step, display.document(step.result_json)) for step in steps[:STEPS_SHOWN]]


def _history(database: str, run: Run) -> list[timeline.TimelineEntry] | None:
    """The events of a run, in order; None if reading them takes too long."""
    query = queries.run_history(run.id, limit=EVENTS_SHOWN)
    try:
        with transaction.atomic(using=database):
            fetch(database, queries.set_timeout(PATIENCE))
            return timeline.entries_of(fetch(database, query))
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != CANCELED:
            raise
        return None


def _replays(database: str, run: Run, verifying: set[str]) -> list[ReplayRow]:
    rows = fetch(database, queries.replays(run.id, limit=REPLAYS_SHOWN))
    return [row for row in rows if row.id not in verifying]


def _original(database: str, run: Run) -> dict[str, Any] | None:
    """The run that this one replays, and the comparison of their results."""
    if run.replay_of is None:
        return None
    found = fetch(database, queries.run(run.replay_of))
    if replays.is_verification(run.task):
        return {"id": run.replay_of, "verdict": "" if found else "gone", "verifies": True}
    if not found:
        return {"id": run.replay_of, "verdict": "gone"}
    return {"id": run.replay_of, **_compared(found[0], run)}


def _compared(original: Run, again: Run) -> dict[str, Any]:
    if original.result_hash is None or again.result_hash is None:
        return {"verdict": "open"}
    if original.result_hash == again.result_hash:
        return {"verdict": "same"}
    changes = diff(original.result, again.result, limit=CHANGES_SHOWN).changes
    return {"verdict": "differs", "changes": [_change(change) for change in changes]}


def _change(change: Change) -> tuple[str, str, str]:
    sides = (change.kind != "added", change.old), (change.kind != "removed", change.new)
    old, new = (display.cut(_plain(value), 200) if there else "" for there, value in sides)
    return change.path or "(whole value)", old, new


def _plain(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _took(run: Run) -> dict[str, str]:
    """How long the run waited for its first attempt, and how long its last attempt took."""
    found = {}
    if run.started_at is not None:
        # A retry moves `run_after` past the first start; then it is useless for the first wait.
        due = run.run_after if run.run_after <= run.started_at else run.enqueued_at
        found["waited"] = times.rough(run.started_at - max(run.enqueued_at, due))
    if run.finished_at is not None and run.last_attempted_at is not None:
        found["took"] = times.rough(run.finished_at - run.last_attempted_at)
    return found
