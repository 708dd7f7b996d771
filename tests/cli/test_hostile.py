# SPDX-License-Identifier: MIT
"""Nothing that a client or a worker sends can reach a terminal or a log as a control character."""

import io
import json
import logging
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
import pytest

from byrote.cli.errors import report_error
from byrote.core import events
from byrote.core.errors import BadOption
from byrote.core.json.codec import digest_of
from byrote.observe.logs import JsonFormatter, LogWriter, TextFormatter
from byrote.service.http.gate import access_log
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.cli.console import byrote
from tests.service.harness import Served, claim_one, enqueue_one, serving
from tests.support import Db, until

EVIL = "\x1b]0;pwned\x07\x1b[2J\rFAKE\nLINE\x9b31m\x7f\u202e\t\x08"
DOC = {
    "python": {"version": EVIL},
    "packages": {EVIL: EVIL},
    "byrote": EVIL,
    "executor": EVIL,
    "vcs": {"commit": EVIL, "dirty": True},
}


@pytest.fixture
def served(address: DatabaseAddress, store: Store) -> Iterator[Served]:
    with serving(address, store) as running:
        yield running


@pytest.fixture
def runs(served: Served) -> list[str]:
    """A run that failed, one that succeeded and one under way, with all their texts."""
    with served.client() as client:
        digest = digest_of(msgspec.json.encode(DOC)).hex()
        sent = client.post("/v1/provenance", json={"digest": digest, "doc": DOC})
        number = sent.raise_for_status().json()["id"]
        return [_one(client, how, number) for how in ("failed", "done", "under way")]


def _one(client: httpx2.Client, how: str, provenance: int) -> str:
    said = {"task": "hello", "kwargs": {EVIL: EVIL}, "retry": {"attempts": 1}}
    run = str(client.post("/v1/runs", json=said).raise_for_status().json()["id"])
    worker = {"worker": "w", "queues": ["default"], "tasks": ["hello@1"]}
    worker |= {"host": EVIL, "version": EVIL, "python": EVIL}
    client.post("/v1/workers", json=worker).raise_for_status()
    lease = claim_one(client)
    held = {"run": run, "token": lease["token"]}
    for path, body in (
        ("/v1/leases/steps", {"steps": [{**held, "sequence": 0, "kind": "step", "name": EVIL,
                                         "result": EVIL, "place": EVIL}]}),
        ("/v1/leases/progress", {"reports": [{**held, "done": 1, "message": EVIL,
                                              "data": {EVIL: EVIL}}]}),
        (f"/v1/runs/{run}/signal", {"event": EVIL, "payload": EVIL}),
    ):  # fmt: skip
        client.post(path, json=body)
    error = dict.fromkeys(("type", "message", "kind", "traceback", "signal", "stderr"), EVIL)
    usage = {EVIL: 2**63 - 1, "wall_us": 2**63 - 1, "attempt": 1}
    end: dict[str, Any] = {
        "failed": {"error": {**error, "worker": EVIL, "fatal": True}},
        "done": {"result": EVIL},
    }.get(how, {})
    if end:
        said = {**held, **end, "usage": usage, "provenance": provenance}
        said["output"] = {"stdout": EVIL, "stderr": EVIL}
        heard = client.post("/v1/leases/finish", json=said).raise_for_status().json()
        assert heard["lost"] == []
    return run


def controls(text: str) -> set[str]:
    return {
        char
        for char in text
        if unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"} and char not in "\n\t"
    }


def test_no_view_of_the_command_line_prints_control_characters(
    runs: list[str], url: str, db: Db
) -> None:
    db.execute(
        "update byrote_task_runs set usage = jsonb_build_array(jsonb_build_object("
        "'wall_us', %s::numeric, 'rss_max', %s::numeric)) where usage is not null",
        (10**400, -(10**400)),
    )
    failed, done, under_way = runs
    views = [
        ("runs", "list"), ("queues",), ("workers",), ("dead", "list"), ("events",), ("verify",),
        ("schedules", "list"), ("doctor",), ("token", "list"), ("runs", "diff", failed, done),
        ("dead", "show", failed), ("runs", "result", done), ("top", "--once"),
        *[("runs", view, run) for run in runs for view in ("show", "history", "logs", "artifacts")],
        ("runs", "show", EVIL), ("queues", "pause", EVIL), ("enqueue", EVIL),
        ("runs", "list", "--task", EVIL), ("runs", "signal", under_way, EVIL),
    ]  # fmt: skip
    shown = 0
    for view in views:
        for words in (view, (*view, "--json")):
            said = byrote(*words, url=url)
            assert controls(said.out) == set(), words
            assert controls(said.err) == set(), words
            # What a task has printed is shown as it is, line by line.
            assert "\nLINE" not in said.out or view[1:2] == ("logs",), words
            shown += "pwned" in said.out

    assert shown >= 8


@pytest.mark.parametrize("as_json", [False, True])
def test_no_printed_error_has_control_characters(
    capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    report_error(BadOption(EVIL), as_json=as_json)
    told = capsys.readouterr().err

    assert "pwned" in told
    assert controls(told) == set()


def test_no_line_of_a_log_is_forged(served: Served) -> None:
    stream = io.StringIO()
    handlers = [logging.StreamHandler(stream), logging.StreamHandler(stream)]
    handlers[0].setFormatter(TextFormatter())
    handlers[1].setFormatter(JsonFormatter())
    level = access_log.level
    access_log.setLevel("INFO")
    for handler in handlers:
        access_log.addHandler(handler)
    try:
        with served.client() as client:
            enqueue_one(client)
            path = "/v1/%1b%5d0;pwned%07%0aFAKE%20LINE%c2%9b"
            asked = httpx2.get(f"{served.url}{path}", headers={"x-request-id": "mine-1"})
            client.get("/v1/whoami")
            until(lambda: "whoami" in stream.getvalue())
    finally:
        access_log.setLevel(level)
        for handler in handlers:
            access_log.removeHandler(handler)
    lines = stream.getvalue().splitlines()

    assert asked.status_code == 404
    assert controls(stream.getvalue()) == set()
    assert not [line for line in lines if line.startswith("FAKE")]
    [text] = [line for line in lines if "pwned" in line and not line.startswith("{")]
    assert "id=mine-1" in text
    assert "client=127.0.0.1" in text
    assert [line for line in lines if "whoami" in line and "token=admin-test" in line]
    [told] = [json.loads(line) for line in lines if line.startswith("{") and "pwned" in line]
    assert told["id"] == "mine-1"
    assert datetime.fromisoformat(told["at"]).tzinfo is not None


def test_no_event_and_no_traceback_forges_a_line() -> None:
    stream = io.StringIO()
    for form in ("text", "json"):
        write = LogWriter(
            stream, form=form, level="info", now=lambda: datetime(2030, 1, 1, tzinfo=UTC)
        )
        write([events.Troubled(EVIL, EVIL, EVIL)])
    try:
        raise ValueError(EVIL)  # noqa: TRY301 -- it is logged below.
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "f.py", 1, "%s", (EVIL,), info)
    for formatter in (TextFormatter(), JsonFormatter()):
        stream.write(formatter.format(record) + "\n")

    assert controls(stream.getvalue()) == set()
    assert not [line for line in stream.getvalue().splitlines() if line.startswith("LINE")]
