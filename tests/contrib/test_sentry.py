# SPDX-License-Identifier: MIT
"""Sentry receives each run that failed for good once, with its exception."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byrote import App, Retry
from byrote.contrib import sentry
from byrote.core.errors import BadOption
from tests.worker.harness import StartWorker, await_end, send, spec

Database = psycopg.Connection[Any]
QUICK = Retry(attempts=3, delay_first="1ms", delay_max="1ms")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REPORTS", str(tmp_path))
    return tmp_path


def events(folder: Path) -> list[dict[str, Any]]:
    path = folder / "sentry"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("executor", ["hand", "inline"])
def test_a_dead_run_is_one_event_and_a_retried_one_is_none(
    db: Database, start_worker: StartWorker, folder: Path, executor: str
) -> None:
    worker = start_worker("tests.tasks.reported:app", executor=executor, hands=2)
    ids = send(
        db,
        spec("dead", "one", retry=QUICK, traceparent=TRACE),
        spec("adead", "two", retry=QUICK),
        spec("recovers", retry=QUICK),
    )
    await_end(db, *ids)
    worker.stop()
    found = {event["transaction"]: event for event in events(folder)}

    assert len(events(folder)) == 2
    assert found.keys() == {"dead", "adead"}
    assert found["dead"]["tags"] == {
        "byrote.run": ids[0], "byrote.task": "dead", "byrote.queue": "default",
        "byrote.attempt": "3", "byrote.trace": TRACE[3:35], "own": "one",
    }  # fmt: skip
    [raised] = found["dead"]["exception"]["values"]
    assert (raised["type"], raised["value"]) == ("ValueError", "one failed")
    assert [frame["function"] for frame in raised["stacktrace"]["frames"]] == ["dead"]
    assert found["dead"]["level"] == "error"
    [crumb] = found["adead"]["breadcrumbs"]["values"]
    assert crumb["message"] == "crumb of two"
    assert "own" not in found["adead"]["tags"]


def test_a_killed_process_and_logged_errors_are_reported_too(
    db: Database, start_worker: StartWorker, folder: Path
) -> None:
    worker = start_worker("tests.tasks.reported:app")
    await_end(db, *send(db, spec("dies")))
    await_end(db, *send(db, spec("logs")))
    worker.stop()
    found = {event["transaction"]: event for event in events(folder)}

    assert found.keys() == {"logs", "dies"}
    assert found["logs"]["logentry"]["message"] == "the task itself logs"
    assert found["dies"]["exception"]["values"][0]["type"] == "HandCrashed"
    assert found["dies"]["fingerprint"] == ["dies", "HandCrashed"]


def test_a_missing_sdk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(sentry, "import_module", missing)
    with pytest.raises(BadOption, match=r"byrote\[sentry\]"):
        sentry.install(App("postgresql://"))
