# SPDX-License-Identifier: MIT
"""What reports cost: the latest goes out when the one before is written, never more than that."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from byrote.core.errors import BadOption
from byrote.core.progress import report_of
from byrote.executors.runtime.asks import AskClient, AskResult
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.progress import LAST_S, AttemptProgress
from tests.support import until


class Slow:
    """An ask client that answers when the test allows it."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self.asked: list[int] = []

        async def make() -> AskClient:
            return AskClient(self._send, lambda _run, _key: (b"", {}))

        self.ask_client = asyncio.run(make())

    def _send(self, _slot: int, number: int, _verb: str, payload: Mapping[str, Any]) -> None:
        self.sent.append(payload)
        self.asked.append(number)

    def answer(self) -> None:
        self.ask_client.answer(self.asked.pop(0), True, True)


def test_nothing_is_sent_before_the_last_is_written_and_then_the_latest() -> None:
    slow = Slow()
    reports = AttemptProgress(slow.ask_client, 0, {"run": "r", "attempt": 1})
    reports.put(report_of(0))
    until(lambda: slow.sent)
    for percent in range(100):
        reports.put(report_of(percent))
    assert len(slow.sent) == 1
    slow.answer()
    until(lambda: len(slow.sent) == 2)

    assert [said["percent"] for said in slow.sent] == [0.0, 99.0]
    assert slow.sent[1]["run"] == "r"


def test_two_attempts_do_not_wait_for_each_other() -> None:
    slow = Slow()
    for run in ("one", "two"):
        AttemptProgress(slow.ask_client, 0, {"run": run, "attempt": 1}).put(report_of(50))
    until(lambda: slow.sent)
    slow.answer()
    until(lambda: len(slow.sent) == 2)

    assert {said["run"] for said in slow.sent} == {"one", "two"}


def test_an_end_sends_the_last_word_and_waits_until_it_is_written() -> None:
    slow = Slow()
    reports = AttemptProgress(slow.ask_client, 0, {"run": "r", "attempt": 1})
    reports.put(report_of(1))
    until(lambda: slow.sent)
    reports.put(report_of(100))
    last = reports.send()
    assert isinstance(last, Future)
    slow.answer()
    assert not last.done()
    slow.answer()

    assert last.result() == AskResult(True, True)
    assert reports.send() is None
    reports.send_last()  # Nothing is left to wait for.


def test_an_end_does_not_wait_for_ever() -> None:
    slow = Slow()
    reports = AttemptProgress(slow.ask_client, 0, {"run": "r", "attempt": 1})
    reports.put(report_of(1))
    reports.send_last()
    asyncio.run(reports.asend_last())

    assert LAST_S <= 2
    assert len(slow.sent) == 1


def test_without_a_worker_a_report_is_checked_and_kept_in_the_context() -> None:
    ctx = Context(run_id="r", task="t", queue="q", attempt=1, labels={})
    ctx.progress(1, 4, "x", a=1)

    assert ctx.reported == report_of(1, 4, "x", {"a": 1})
    assert ctx.reports is None
    with pytest.raises(BadOption):
        ctx.progress(5, 4)
