# SPDX-License-Identifier: MIT
"""The public doors of a Django task: its context, `current()`, and what other code does to it."""

import asyncio
from typing import Any

import pytest
from django.db import connections, transaction

from byrote.core.errors import BadOption
from byrote.django import acancel, asignal, cancel, compat, current, signal
from tests.django.driving import drain
from tests.django.shop import tasks
from tests.django.shop.models import Note

type Shop = dict[str, str]


def refreshed(result: Any) -> Any:
    result.refresh()
    return result


def test_a_context_has_the_verbs_of_a_plain_task(shop: Shop) -> None:
    result = tasks.durable.using(labels={"tenant": "acme"}).enqueue()
    drain(shop)
    assert refreshed(result).run.wait_reason == "event"
    assert signal(result, "go", {"by": "Eve"})
    drain(shop)

    assert refreshed(result).return_value == {"by": "Eve", "labels": {"tenant": "acme"}, "calls": 1}
    assert Note.objects.filter(text="once").count() == 1
    assert not signal(result.id, "go")


def marks(alias: str, run_id: str) -> int:
    """How many marks of `once` a database has for a run."""
    with connections[alias].cursor() as cursor:
        cursor.execute("select count(*) from byrote_once where result_id = %s", [run_id])
        return int(cursor.fetchone()[0])


def test_a_separate_alias_marks_in_its_own_database(shop: Shop) -> None:
    result = tasks.durable.using(backend="apart").enqueue()
    signal(result, "go", {"by": "Ada"})
    drain(shop, "--backend", "apart")

    assert refreshed(result).return_value["by"] == "Ada"
    assert [marks(alias, result.id) for alias in ("default", "other")] == [0, 1]


def test_cancelling_belongs_to_the_callers_transaction(shop: Shop) -> None:
    kept, gone = tasks.add.enqueue(1, 2), tasks.add.enqueue(3, 4)
    with transaction.atomic():
        assert cancel(kept)
        transaction.set_rollback(True)
    assert cancel(gone.id)
    drain(shop)

    assert refreshed(kept).return_value == 3
    assert refreshed(gone).errors[0].exception_class.__name__ == "TaskCancelled"
    assert not cancel(gone)
    with pytest.raises(compat.TaskResultDoesNotExist):
        cancel(gone.id, backend="reports")


def test_async_code_cancels_and_signals(shop: Shop) -> None:
    result = tasks.durable.enqueue()

    async def act() -> list[bool]:
        return [await asignal(result, "go", 1), await acancel(result), await acancel(result.id)]

    assert asyncio.run(act()) == [True, True, False]


def test_outside_of_a_task_the_attempt_is_none() -> None:
    with pytest.raises(BadOption, match="No task is being executed here"):
        current()


def test_labels_that_are_none_are_refused() -> None:
    with pytest.raises(compat.InvalidTask, match="Labels"):
        tasks.add.using(labels={"tenant": 7}).enqueue(1, 2)
