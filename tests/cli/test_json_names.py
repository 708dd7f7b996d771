# SPDX-License-Identifier: MIT
"""One name per thing in the `--json` of all commands: no column of SQL, no second unit."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.console import byrote
from tests.cli.runs.test_bulk import fail
from tests.support import Db, enqueue, register

OTHER = {
    "result_id": "id",
    "run_id": "id",
    "queue_name": "queue",
    "task_path": "task",
    "task_name": "task",
    "task_version": "version",
    "worker_id": "worker",
    "timeout": "timeout_s",
    "timeout_ms": "timeout_s",
    "spec_json": "spec",
    "return_json": "result",
    "result_json": "result",
    "errors_json": "errors",
    "faults": "errors",
    "retry_json": "retry",
    "created_at": "enqueued_at",
    "length": "depth",
}
"""Names that no output has, and the name of the vocabulary for each."""

COMMANDS = (
    "runs list", "runs show {run}", "runs history {run}", "runs logs {run}",
    "runs artifacts {run}", "runs show {dead}", "runs retry {dead}", "runs cancel {run}",
    "runs cancel --task t --dry-run", "dead list", "queues list", "queues pause default",
    "queues set default", "queues purge default --dry-run", "queues unserved default 2h",
    "queues events default all", "workers", "top --once", "schedules list", "schedules show tidy",
    "events", "doctor", "verify", "prune --dry-run", "migrate --check",
    "enqueue t --timeout 3s",
)  # fmt: skip


def keys(value: Any) -> Iterator[str]:
    """Every key of an output, but not those of users' own values."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            if name not in {"args", "kwargs", "labels", "result", "spec", "data", "errors"}:
                yield from keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_has_only_the_names_of_the_vocabulary(db: Db, url: str, command: str) -> None:
    register(db, "w", "default")
    [dead], [run] = fail(db, 1), enqueue(db, timeout="3s")
    made = byrote("schedules", "add", "tidy", "t", "--every", "1h", "--timeout", "3s", url=url)
    assert made.code == 0, made.err
    shown = byrote(*command.format(run=run, dead=dead).split(), "--json", url=url)
    found = {name for one in shown.objects for name in keys(one)}

    assert {name: OTHER[name] for name in found if name in OTHER} == {}
    assert shown.code in {0, 1, 3}, shown.err


@pytest.mark.parametrize("command", ["runs list", "dead list", "runs show {run}", "schedules list"])
def test_runs_and_schedules_have_the_same_names(db: Db, url: str, command: str) -> None:
    register(db, "w", "default")
    [run] = fail(db, 1)
    byrote("schedules", "add", "tidy", "t", "--every", "1h", "--timeout", "3s", url=url)
    shown = byrote(*command.format(run=run).split(), "--json", url=url)

    assert {"queue", "task", "version", "timeout_s"} <= shown.objects[0].keys()


def test_queues_and_top_count_the_same_depth(db: Db, url: str) -> None:
    enqueue(db, 3)
    [queue] = byrote("queues", "--json", url=url).objects
    [shown] = byrote("top", "--once", "--json", url=url).object["stats"]["queues"]

    assert queue["depth"] == 3
    assert "depth" in shown
