# SPDX-License-Identifier: MIT
"""Signals and Django's log lines report the stored outcome, with any receivers."""

import json
from typing import Any

import pytest

from byrote.django import compat
from tests.django.driving import drain
from tests.django.shop import tasks
from tests.django.shop.models import Note

type Shop = dict[str, str]


def told() -> dict[str, Any]:
    heard = [json.loads(note.text) for note in Note.objects.all() if note.text.startswith("{")]
    assert all(each["same"] and each["status"] == each["stored"] for each in heard)
    return {each["task"]: each for each in heard}


def test_the_log_has_failed_for_a_value_that_cannot_be_stored(shop: Shop) -> None:
    sent = [tasks.odd_value.enqueue("nan"), tasks.odd_value.enqueue("surrogate")]
    sent.append(tasks.shout.enqueue(5_000_000))
    log = drain(shop)
    for violent in (tasks.crash, tasks.dawdle):
        # Apart: a process that goes down takes the signals along that it has yet to send.
        sent.append(violent.enqueue())
        log += drain(shop)

    for result in sent:
        assert f"id={result.id} path={result.task.module_path} state=FAILED" in log
        assert f"id={result.id} path={result.task.module_path} state=SUCCESSFUL" not in log
    for reason in ("BadPayload: $: The task returned", "TaskCrashed: ", "TaskTimedOut: "):
        assert reason in log


def test_a_single_receiver_gets_the_stored_result(shop: Shop) -> None:
    tasks.echo.using(priority=7).enqueue(42)
    tasks.shout.enqueue(5_000_000)
    tasks.fail.enqueue("no")
    drain(shop, SHOP_RECEIVERS="alone")

    heard = told()
    assert (heard["echo"]["value"], heard["echo"]["priority"]) == ([[42], {}], 7)
    assert (heard["shout"]["status"], len(heard["shout"]["errors"])) == ("FAILED", 1)
    assert heard["fail"]["errors"] == ["builtins.ValueError"] * 3


@pytest.mark.parametrize(("priority", "attempts"), [(7, 2), (3, 1)])
def test_a_backoff_sees_the_stored_result(shop: Shop, priority: int, attempts: int) -> None:
    result = tasks.fail_by_priority.using(priority=priority).enqueue()
    drain(shop)
    result.refresh()

    assert result.status == compat.TaskResultStatus.FAILED
    assert result.attempts == attempts


def test_each_failed_attempt_is_logged_once_by_byrote_or_by_django(shop: Shop) -> None:
    result = tasks.fail.enqueue("no")
    lines = [json.loads(line) for line in drain(shop).splitlines()]
    failures = [line for line in lines if "traceback" in line]

    assert [line["logger"] for line in failures] == ["byrote.task", "byrote.task", "django.tasks"]
    assert [line["level"] for line in failures] == ["warning", "warning", "error"]
    assert [line["run"] for line in failures[:2]] == [result.id, result.id]
