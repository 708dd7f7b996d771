# SPDX-License-Identifier: MIT
"""Unique keys of Django's tasks: one unfinished call for each, in the caller's transaction."""

from contextlib import suppress
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from byrote.django import compat, enqueue_many, task
from byrote.django.models import Run
from byrote.django.test import captured_tasks, run_tasks
from tests.django.shop import tasks


class Abandoned(Exception):
    """Rolls a transaction back."""


def test_a_second_call_with_a_key_is_the_first() -> None:
    with captured_tasks() as sent, CaptureQueriesContext(connection) as queries:
        first = tasks.report.enqueue("11")
    assert len(queries) == 1
    with captured_tasks() as sent_again:
        second = tasks.report.enqueue(month="11", region="us")

    assert (first.created, second.created) == (True, False)
    assert (second.id, second.args, second.kwargs) == (first.id, ["11"], {})
    assert ([one.id for one in sent], sent_again) == ([first.id], [])
    assert Run.objects.get().unique_key == "report:11"
    assert first.enqueued_at == Run.objects.get().enqueued_at == second.enqueued_at


def test_a_key_is_free_again_when_the_task_has_finished() -> None:
    first = tasks.report.enqueue("11")
    run_tasks()
    second = tasks.report.enqueue("11")
    first.refresh()

    assert first.return_value == "11 in eu, attempt 1"
    assert first.created
    assert second.created
    assert second.id != first.id


def test_a_rolled_back_transaction_frees_its_keys() -> None:
    with suppress(Abandoned), transaction.atomic():
        first = tasks.report.enqueue("11")
        assert tasks.report.enqueue("11").id == first.id
        raise Abandoned
    second = tasks.report.enqueue("11")

    assert second.created
    assert [str(run.result_id) for run in Run.objects.all()] == [second.id]


def test_using_sets_the_key_of_a_call() -> None:
    one = tasks.add.using(unique_key="sum").enqueue(1, 2)
    two = tasks.add.using(unique_key=lambda a, b: f"{a}+{b}").enqueue(1, 2)
    same = tasks.add.using(unique_key="sum", priority=5).enqueue(3, 4)

    assert same.id == one.id
    assert same.task.priority == 0
    keys = Run.objects.order_by("result_id").values_list("unique_key", flat=True)
    assert list(keys) == ["sum", "1+2"]
    assert two.created


def test_a_keyword_of_the_tasks_own_is_not_swallowed() -> None:
    result = tasks.echo.enqueue(unique_key="mine")

    assert tasks.echo.get_result(result.id).kwargs == {"unique_key": "mine"}
    assert Run.objects.get().unique_key is None


def test_many_calls_have_each_key_once() -> None:
    held = tasks.report.enqueue("0")
    calls: list[Any] = [(tasks.report, [str(n % 3)], {}) for n in range(6)]
    with captured_tasks() as sent:
        results = enqueue_many([*calls, (tasks.add, [1, 2], {})])

    assert [one.created for one in results] == [False, True, True, False, False, False, True]
    assert results[0].id == results[3].id == held.id
    assert (results[4].id, results[5].id) == (results[1].id, results[2].id)
    assert [one.id for one in sent] == [results[n].id for n in (1, 2, 6)]
    assert all(one.enqueued_at is not None for one in results)
    assert Run.objects.count() == 4


def test_aenqueue_returns_the_same() -> None:
    first = async_to_sync(tasks.report.aenqueue)("11")
    second = async_to_sync(tasks.report.aenqueue)("11")

    assert (first.created, second.created, second.id) == (True, False, first.id)


def test_a_task_may_have_a_memo_and_a_key() -> None:
    first, second = tasks.nightly.enqueue(), tasks.nightly.enqueue()
    assert (second.id, second.created) == (first.id, False)
    run_tasks()
    third = tasks.nightly.enqueue()

    assert third.created
    assert third.id != first.id


def test_keys_of_one_alias_are_not_those_of_another() -> None:
    first = tasks.add.using(unique_key="k").enqueue(1, 2)
    other = tasks.add.using(unique_key="k", backend="reports").enqueue(1, 2)

    assert first.created
    assert other.created


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", 5])
def test_a_bad_key_is_an_invalid_task(key: Any) -> None:
    with pytest.raises(compat.InvalidTask, match="1 to 200 printable characters"):
        tasks.add.using(unique_key=key)
    with pytest.raises(compat.InvalidTask, match="1 to 200 printable characters"):
        tasks.add.using(unique_key=lambda a: key if a else None).enqueue(1, 2)
    assert not Run.objects.exists()


def test_a_function_of_what_the_task_does_not_take_is_an_invalid_task() -> None:
    with pytest.raises(compat.InvalidTask, match="takes 'year'"):
        task(unique_key=lambda year: year)(tasks.add.func)
