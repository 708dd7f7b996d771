# SPDX-License-Identifier: MIT
"""What we give to users' tests, used as they would."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone

from byrote import Retry
from byrote.django import compat
from byrote.django.errors import TaskTimedOut
from byrote.django.models import Run
from byrote.django.test import assert_enqueued, assert_not_enqueued, captured_tasks, run_tasks
from byrote.django.testing.plugin import TasksFixture
from tests.django.settings import TASKS
from tests.django.shop import tasks
from tests.django.shop.models import Note

INSTANT = {
    "default": {**TASKS["default"], "BACKEND": "byrote.django.Immediate"},
    "raising": {"BACKEND": "byrote.django.Immediate", "OPTIONS": {"RAISE": True}},
    "dummy": {"BACKEND": "byrote.django.Dummy"},
}


class InATestCase(TestCase):
    """Nothing is committed here: everything happens in the test's own transaction."""

    databases = ("default", "other")

    def test_tasks_run_on_the_connection_of_the_test(self) -> None:
        Note.objects.create(text="not committed")
        sent = tasks.note.enqueue("from a task")
        [result] = run_tasks()

        assert result.id == sent.id
        assert result.status == compat.TaskResultStatus.SUCCESSFUL
        assert list(Note.objects.values_list("text", flat=True)) == ["not committed", "from a task"]

    def test_async_tasks_see_the_same_transaction(self) -> None:
        Note.objects.create(text="x")
        tasks.anote.enqueue("x")
        [result] = run_tasks()

        assert result.return_value == 2

    def test_retries_happen_in_virtual_time(self) -> None:
        tasks.fail_first.using(backoff="exponential").enqueue()
        [result] = run_tasks()

        assert (result.return_value, result.attempts) == (2, 2)
        assert result.last_attempted_at > result.started_at

    def test_the_error_of_a_failed_task_is_raised_unless_it_is_wanted(self) -> None:
        sent = tasks.fail.enqueue("no")
        with pytest.raises(ValueError, match="no"):
            run_tasks()
        sent.refresh()
        assert (sent.status, sent.attempts) == (compat.TaskResultStatus.FAILED, 3)

        tasks.fail.enqueue("no")
        [result] = run_tasks(raise_errors=False)
        assert result.status == compat.TaskResultStatus.FAILED

    def test_deferred_tasks_wait_for_their_moment(self) -> None:
        tomorrow = timezone.now() + timedelta(days=1)
        tasks.add.using(run_after=tomorrow).enqueue(1, 2)

        assert run_tasks() == []
        assert run_tasks(now=tomorrow - timedelta(seconds=1)) == []
        assert [r.return_value for r in run_tasks(now=tomorrow)] == [3]
        tasks.add.using(run_after=tomorrow).enqueue(3, 4)
        assert [r.return_value for r in run_tasks(include_deferred=True)] == [7]

    def test_a_statement_that_fails_in_a_task_does_not_break_the_test(self) -> None:
        Note.objects.create(pk=1, text="first")
        tasks.collide.enqueue()
        with pytest.raises(IntegrityError):
            run_tasks()

        assert Note.objects.count() == 1

    def test_only_the_queue_that_is_named_runs(self) -> None:
        tasks.add.enqueue(1, 2)
        tasks.note.enqueue("mail")

        assert [r.task.name for r in run_tasks("mail")] == ["note"]
        assert [r.task.name for r in run_tasks()] == ["add"]

    def test_what_was_enqueued_can_be_asserted(self) -> None:
        with captured_tasks() as sent:
            tasks.add.enqueue(1, b=2)

        assert [r.args for r in sent] == [[1]]
        assert assert_enqueued(tasks.add, 1, b=2).id == sent[0].id
        assert_enqueued(tasks.add)
        assert_not_enqueued(tasks.add, 2, 2)
        assert_not_enqueued(tasks.note)
        with pytest.raises(AssertionError, match=r"add\(1, b=2\) was enqueued"):
            assert_not_enqueued(tasks.add)
        with pytest.raises(AssertionError, match=r"add\(9\) was not enqueued(.|\n)*\(1, b=2\)"):
            assert_enqueued(tasks.add, 9)

    def test_receivers_are_called_for_tasks_that_run_in_a_test(self) -> None:
        heard: list[Any] = []

        def hear(sender: Any, task_result: Any, **_more: Any) -> None:
            heard.append((sender, task_result.status))

        compat.task_finished.connect(hear)
        try:
            tasks.add.enqueue(1, 2)
            run_tasks()
        finally:
            compat.task_finished.disconnect(hear)

        backend = type(compat.task_backends["default"])
        assert heard == [(backend, compat.TaskResultStatus.SUCCESSFUL)]

    def test_another_backend_has_its_own_tasks(self) -> None:
        tasks.add.using(backend="apart").enqueue(1, 2)

        assert run_tasks() == []
        assert [r.return_value for r in run_tasks(backend="apart")] == [3]


class Limits(TestCase):
    """Timeouts and memos hold as they do with a worker."""

    def test_a_sync_task_is_interrupted_when_its_time_is_up(self) -> None:
        sent = tasks.dawdle.enqueue()
        with pytest.raises(TaskTimedOut, match=r"timeout of 0\.2 s"):
            run_tasks()
        sent.refresh()

        assert sent.status == compat.TaskResultStatus.FAILED
        assert [error.exception_class for error in sent.errors] == [TaskTimedOut]

    def test_an_async_task_is_cancelled_when_its_time_is_up(self) -> None:
        tasks.adawdle.enqueue()
        [result] = run_tasks(raise_errors=False)

        assert [error.exception_class for error in result.errors] == [TaskTimedOut]

    def test_a_query_is_released_and_the_test_continues(self) -> None:
        Note.objects.create(text="kept")
        tasks.query_long.enqueue()
        [result] = run_tasks(raise_errors=False)

        assert (result.attempts, len(result.errors)) == (2, 2)
        assert list(Note.objects.values_list("text", flat=True)) == ["kept"]

    def test_a_task_that_cannot_be_interrupted_has_timed_out_when_it_comes_back(self) -> None:
        tasks.ablock.enqueue()
        heard: list[Any] = []

        def hear(task_result: Any, **_more: Any) -> None:
            heard.append(task_result.status)

        compat.task_finished.connect(hear)
        try:
            [result] = run_tasks(raise_errors=False)
        finally:
            compat.task_finished.disconnect(hear)

        assert [error.exception_class for error in result.errors] == [TaskTimedOut]
        assert heard == [compat.TaskResultStatus.FAILED]

    def test_a_memo_answers_the_next_call(self) -> None:
        for task in (tasks.remembered, tasks.aremembered):
            task.enqueue(2)
            [first] = run_tasks()
            second = task.enqueue(2)

            assert second.status == compat.TaskResultStatus.SUCCESSFUL
            assert second.return_value == first.return_value
            assert run_tasks() == []


class InATransactionTestCase(TransactionTestCase):
    databases = ("default", "other")

    def test_one_leaves_a_run_behind(self) -> None:
        assert not Run.objects.exists()
        tasks.add.enqueue(1, 2)
        assert Run.objects.count() == 1

    def test_two_finds_none_though_neither_cleaned_up(self) -> None:
        """Our models are managed, so Django's flush empties their tables."""
        self.test_one_leaves_a_run_behind()


def test_the_fixture_has_it_all(byrote_tasks: TasksFixture) -> None:
    tasks.add.enqueue(1, 2)

    assert [r.args for r in byrote_tasks.sent] == [[1, 2]]
    byrote_tasks.assert_enqueued(tasks.add, 1, 2)
    byrote_tasks.assert_not_enqueued(tasks.note)
    assert [r.return_value for r in byrote_tasks.run()] == [3]


@override_settings(TASKS=INSTANT)
def test_immediate_and_dummy_take_our_options() -> None:
    result = tasks.fail.using().enqueue("no")
    assert (result.status, result.attempts) == (compat.TaskResultStatus.FAILED, 1)

    with pytest.raises(ValueError, match="loud"):
        tasks.fail.using(backend="raising").enqueue("loud")
    assert tasks.add.using(backend="raising").enqueue(1, 2).return_value == 3

    tasks.add.using(backend="dummy").enqueue(1, 2)
    assert_enqueued(tasks.add.using(backend="dummy"), 1, 2)


def twice(_error: BaseException, result: Any) -> float | None:
    return 0 if result.attempts < 2 else None


class Backoffs(TestCase):
    """A back-off may be the task's, or the call's."""

    def test_a_call_may_have_its_own_function(self) -> None:
        sent = tasks.fail.using(max_attempts=9, backoff=twice).enqueue("no")
        run_tasks(raise_errors=False)
        sent.refresh()

        assert sent.attempts == 2

    def test_a_call_may_have_its_own_policy(self) -> None:
        sent = tasks.fail.using(backoff=Retry(backoff="fixed", delay_first="1h", jitter=False))
        result = sent.enqueue("no")
        run_tasks(raise_errors=False)
        result.refresh()

        assert result.last_attempted_at - result.enqueued_at > timedelta(hours=2)

    def test_a_function_that_no_worker_could_import_is_refused(self) -> None:
        with pytest.raises(compat.InvalidTask, match="define it as a function of a module"):
            tasks.fail.using(backoff=lambda _error, _result: 0).enqueue("no")
