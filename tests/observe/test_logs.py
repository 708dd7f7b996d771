# SPDX-License-Identifier: MIT
"""Lines of the log: short as text, complete as JSON."""

import io
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from byrote.core import events
from byrote.core.outcome import Fault, brief
from byrote.observe.logs import AttemptFilter, JsonFormatter, LogWriter, TextFormatter, text_line

pytestmark = pytest.mark.pure

AT = "2026-01-02T03:04:05.678+00:00"
RUN = "01a1edc1-60e1-7a90-b7e6-750b7cba7ff7"
WHO = (RUN, "shop.tasks.send_email", "default", 1, "worker-7.example.com-4711-abcdef")


def record(message: str = "hello", **extra: Any) -> logging.LogRecord:
    return logging.getLogger("shop").makeRecord(
        "shop", logging.WARNING, __file__, 1, message, (), None, extra=extra
    )


@pytest.mark.parametrize(
    "event",
    [
        events.Claimed(*WHO, waited_s=0.012),
        events.Succeeded(*WHO, took_s=12.345678),
        events.Retried(*WHO, after_s=1.5, error="raised ValueError: " + "x" * 200),
        events.Failed(*WHO, error="raised ValueError: " + "x y " * 50),
        events.Snoozed(*WHO, after_s=3600.0),
        events.LeaseRefused(*WHO),
    ],
)
def test_text_of_an_event_fits_120_columns(event: events.Event) -> None:
    line = text_line(AT, event)

    assert all(len(part) <= 120 for part in line.splitlines())
    assert line.startswith("03:04:05.678 ")
    assert "run=01a1edc1-60e1-7a90 task=shop.tasks.send_email" in line
    assert "worker-7" not in line


def test_text_names_the_worker_where_it_is_the_subject() -> None:
    assert "worker=w7" in text_line(AT, events.WorkerStopped("w7", 3, 0))
    assert "worker=w8" in text_line(AT, events.Lost(RUN, "READY", 1, "w8"))
    assert "w7" not in text_line(AT, events.HandStarted("w7", 42))


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("info", ["Claimed", "Retried", "Failed", "HandEnded", "HandEnded"]),
        ("warning", ["Retried", "Failed", "HandEnded"]),
        ("error", ["Failed"]),
    ],
)
def test_a_retry_is_a_warning_and_a_failure_an_error(level: str, shown: list[str]) -> None:
    stream = io.StringIO()
    writer = LogWriter(
        stream, form="json", level=level, now=lambda: datetime(2026, 1, 2, tzinfo=UTC)
    )
    writer(
        [
            events.Claimed(*WHO),
            events.Retried(*WHO),
            events.Failed(*WHO),
            events.HandEnded("w7", 42, "was killed by SIGKILL"),
            events.HandEnded("w7", 43, events.ENDED_WELL),
        ]
    )

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == shown


def test_a_hand_that_ends_on_request_is_not_marked() -> None:
    assert "!" not in text_line(AT, events.HandEnded("w7", 43, events.ENDED_WELL))
    assert " ! HandEnded" in text_line(AT, events.HandEnded("w7", 43, "was killed by SIGKILL"))


def test_json_has_the_time_and_the_fields_of_extra() -> None:
    line = json.loads(JsonFormatter().format(record(order=42, odd=1j, at="noon")))

    assert datetime.fromisoformat(line["at"]).tzinfo is not None
    assert (line["message"], line["level"], line["logger"]) == ("hello", "warning", "shop")
    assert (line["order"], line["odd"], line["at_"]) == (42, "1j", "noon")


@pytest.mark.parametrize("odd", [{("a", "b"): 1}, "\ud800", {1: {object(): 2}}])
def test_json_writes_a_value_that_json_does_not_have(odd: object) -> None:
    line = json.loads(JsonFormatter().format(record(odd=odd)))

    assert line["message"] == "hello"
    assert "odd" in line


def test_every_line_of_an_attempt_names_its_run() -> None:
    line, outside = record("first\nsecond"), record()
    AttemptFilter(lambda: {"run": RUN, "attempt": 2}).filter(line)
    AttemptFilter(lambda: None).filter(outside)

    assert TextFormatter().format(line).endswith("shop: [01a1edc1-60e1-7a90] first\\nsecond")
    assert json.loads(JsonFormatter().format(line))["run"] == RUN
    assert "[" not in TextFormatter().format(outside)


def test_a_fault_in_brief_has_its_message_and_its_place() -> None:
    try:
        json.loads("{")
    except ValueError:
        kind, error, trace = sys.exc_info()
    text = logging.Formatter().formatException((kind, error, trace))  # type: ignore[arg-type]
    fault = Fault("raised", "ValueError", "two\nlines", text)

    assert brief(fault).startswith("raised ValueError: two lines (decoder.py:")
    assert brief(Fault("crashed", "HandCrashed")) == "crashed HandCrashed"
