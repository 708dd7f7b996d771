# SPDX-License-Identifier: MIT
"""Enqueueing is one INSERT on Django's own connection, and a stored run is a full TaskResult."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from byrote.django import compat, enqueue_many, enqueue_on_commit
from byrote.django.models import Run
from tests.django.shop import tasks
from tests.django.shop.models import Note


class Abandoned(Exception):
    """Rolls a transaction back."""


@contextmanager
def rolled_back(using: str = "default") -> Iterator[None]:
    """A transaction, or a savepoint in one, that comes to nothing."""
    with suppress(Abandoned), transaction.atomic(using=using):
        yield
        raise Abandoned


def test_enqueue_is_one_statement_and_the_result_is_what_is_stored() -> None:
    with CaptureQueriesContext(connection) as queries:
        sent = tasks.echo.enqueue(1, x="y")

    assert len(queries) == 1
    found = tasks.echo.get_result(sent.id)
    assert (found.args, found.kwargs) == ([1], {"x": "y"})
    assert found.enqueued_at == sent.enqueued_at
    assert found.status == sent.status == compat.TaskResultStatus.READY
    assert found.task == sent.task
    assert (found.errors, found.worker_ids, found.attempts) == ([], [], 0)
    assert found.started_at is found.finished_at is found.last_attempted_at is None
    with pytest.raises(ValueError, match="not finished"):
        _ = found.return_value


def test_a_rolled_back_transaction_takes_its_tasks_along() -> None:
    with rolled_back():
        tasks.add.enqueue(1, 2)

    assert not Run.objects.exists()


def test_a_savepoint_takes_back_only_what_came_after_it() -> None:
    with transaction.atomic():
        kept = tasks.add.enqueue(1, 2)
        with rolled_back():
            tasks.add.enqueue(3, 4)

    assert [str(run.result_id) for run in Run.objects.all()] == [kept.id]


def test_other_sessions_do_not_see_a_task_before_the_commit() -> None:
    other = connections.create_connection("default")
    try:
        with transaction.atomic():
            tasks.add.enqueue(1, 2)
            assert count(other) == 0
        assert count(other) == 1
    finally:
        other.close()


def count(other: Any) -> int:
    with other.cursor() as cursor:
        cursor.execute("select count(*) from byrote_runs")
        return int(cursor.fetchone()[0])


def test_aenqueue_joins_the_transaction_of_its_caller() -> None:
    with rolled_back():
        result = async_to_sync(tasks.add.aenqueue)(1, 2)
        assert async_to_sync(tasks.add.aget_result)(result.id).args == [1, 2]

    assert not Run.objects.exists()


def test_a_refused_argument_leaves_the_transaction_usable() -> None:
    with transaction.atomic():
        for bad in (float("nan"), "\ud800", {1, 2}, object(), {(1,): 2}, {1: 0, "1": 0}):
            with pytest.raises((TypeError, ValueError)):
                tasks.echo.enqueue(bad)
        Note.objects.create(text="still here")
        tasks.echo.enqueue("fine")

    assert (Note.objects.count(), Run.objects.count()) == (1, 1)


def test_a_broken_transaction_refuses_a_task_like_any_statement() -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(transaction.TransactionManagementError):
            tasks.add.enqueue(1, 2)


def test_many_are_accepted_in_order_and_together() -> None:
    calls = [(tasks.add, (n, n), {}) for n in range(2_500)]
    with CaptureQueriesContext(connection) as queries:
        results = enqueue_many(calls)

    assert len(queries) <= 3 + 4  # Three batches, and a transaction around them.
    assert [result.args for result in results] == [[n, n] for n in range(2_500)]
    assert [str(run.result_id) for run in Run.objects.order_by("rank")] == [r.id for r in results]
    assert tasks.add.get_result(results[-1].id).enqueued_at == results[-1].enqueued_at


def test_of_many_with_one_bad_none_is_accepted() -> None:
    with pytest.raises(ValueError, match="NaN"):
        enqueue_many([(tasks.echo, (1,), {}), (tasks.echo, (float("nan"),), {})])

    assert not Run.objects.exists()


def test_enqueue_on_commit_waits_for_the_other_database() -> None:
    with rolled_back(using="other"):
        enqueue_on_commit(tasks.add, 1, 2, using="other")
    assert not Run.objects.exists()

    with transaction.atomic(using="other"):
        enqueue_on_commit(tasks.add, 1, 2, using="other")
        with pytest.raises(TypeError):
            enqueue_on_commit(tasks.add, object(), using="other")
        assert not Run.objects.exists()
    assert Run.objects.count() == 1


def test_an_alias_may_live_in_another_database() -> None:
    result = tasks.add.using(backend="apart").enqueue(1, 2)

    assert not Run.objects.exists()
    assert Run.objects.using("other").get().task_path == "apart:tests.django.shop.tasks.add"
    assert tasks.add.using(backend="apart").get_result(result.id).backend == "apart"
