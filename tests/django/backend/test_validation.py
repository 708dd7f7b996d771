# SPDX-License-Identifier: MIT
"""Invalid calls raise Django's own exceptions, with a message on what to do."""

import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import django
import pytest
from django.test import override_settings

from byrote.django import compat, task
from byrote.django.app import backend_of
from byrote.django.models import Run
from byrote.django.worker.attempt import Attempts
from tests.django.shop import tasks
from tests.programs import ELSEWHERE

EAST, WEST = timezone(timedelta(hours=9)), timezone(timedelta(hours=-9))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"priority": 101}, "between -100 and 100"),
        ({"priority": -101}, "between -100 and 100"),
        ({"priority": 1.5}, "whole number"),
        ({"priority": "5"}, "whole number from -100 to 100, not '5'"),
        ({"priority": True}, "not True"),
        ({"priority": float("nan")}, "."),
        ({"queue_name": "typo"}, "Queue 'typo'"),
        ({"queue_name": 5}, "queue_name is a text"),
        ({"run_after": datetime(2030, 1, 1)}, "aware"),  # noqa: DTZ001 -- the very point.
        ({"run_after": timedelta(minutes=5)}, r"timezone\.now\(\) \+ timedelta"),
        ({"run_after": 5}, "is a datetime"),
        ({"run_after": "10m"}, "is a datetime"),
        ({"run_after": datetime.max.replace(tzinfo=WEST)}, "1 to 9999"),
        ({"run_after": datetime.min.replace(tzinfo=EAST)}, "1 to 9999"),
        ({"max_attempts": 0}, "between 1 and"),
        ({"max_attempts": "5"}, "between 1 and"),
        ({"max_attempts": True}, "between 1 and"),
        ({"timeout": "soon"}, "Write a duration"),
        ({"timeout": -1}, "between 0"),
        ({"timeout": 0}, "between 1 ms"),
        ({"backoff": "sometimes"}, "a back-off is"),
        ({"backoff": 5}, "a back-off is"),
    ],
)
def test_a_wrong_word_is_an_invalid_task(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(compat.InvalidTask, match=said):
        tasks.add.using(**changes)


@pytest.mark.parametrize("alias", ["nowhere", ""])
def test_an_unknown_alias_is_an_invalid_backend(alias: str) -> None:
    with pytest.raises(compat.InvalidTaskBackend):
        tasks.add.using(backend=alias or "empty")


def test_a_task_must_be_a_function_that_a_worker_can_import() -> None:
    for function in (
        len,
        lambda: None,
        Holder.method,
        lambda context: context,
        Holder().method,
    ):
        with pytest.raises(compat.InvalidTask):
            task(function)


class Holder:
    @staticmethod
    def method() -> None:
        """Of a class: it cannot be imported by its path."""


def test_run_after_is_an_option_of_a_call_and_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="run_after"):
        task(run_after=datetime.now(UTC))
    with pytest.raises(TypeError, match="retries"):
        task(retries=3)(tasks.add.func)
    with pytest.raises(compat.InvalidTask, match="executor"):
        task(executor="moon")(tasks.add.func)
    with pytest.raises(compat.InvalidTask, match="command cannot have a memo"):
        task(executor="command", memo="1h")(tasks.add.func)
    with pytest.raises(compat.InvalidTask, match="between 1 second and 10 years"):
        task(memo=0)(tasks.add.func)
    with pytest.raises(compat.InvalidTask, match="context"):
        task(takes_context=True)(tasks.add.func)
    with pytest.raises(compat.InvalidTask, match="seed is 'run'"):
        task(seed="dice")(tasks.add.func)


def test_a_task_may_be_seeded_from_its_spec() -> None:
    attempts = Attempts(backend_of("default"))

    assert attempts.task_of(tasks.add).seed == "run"
    assert attempts.task_of(task(seed="spec")(tasks.add.func)).seed == "spec"


@pytest.mark.parametrize("priority", [-100, 0, 100, 5.0])
def test_whole_priorities_are_kept(priority: float) -> None:
    result = tasks.add.using(priority=priority).enqueue(1, 2)

    assert tasks.add.get_result(result.id).task.priority == priority


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        (datetime(2000, 1, 1, tzinfo=UTC), "READY"),
        (datetime.min.replace(tzinfo=UTC), "READY"),
        (datetime(2100, 6, 1, 12, tzinfo=EAST), "WAITING"),
        (datetime.max.replace(tzinfo=UTC), "WAITING"),
    ],
)
def test_any_moment_of_the_calendar_is_taken(moment: datetime, status: str) -> None:
    result = tasks.add.using(run_after=moment).enqueue(1, 2)

    assert Run.objects.get().status == status
    assert tasks.add.get_result(result.id).task.run_after == (
        moment if status == "WAITING" else None
    )


@override_settings(USE_TZ=False)
def test_without_time_zones_everything_is_naive() -> None:
    later = datetime(2100, 6, 1, 12)  # noqa: DTZ001 -- the very point.
    result = tasks.add.using(run_after=later).enqueue(1, 2)
    found = tasks.add.get_result(result.id)

    assert found.task.run_after == later
    assert found.enqueued_at.tzinfo is None
    assert found.enqueued_at == result.enqueued_at


def test_a_tasks_own_keywords_are_never_swallowed() -> None:
    words = {"priority": 1, "run_after": 2, "queue_name": 3, "using": 4, "backend": 5, "task": 6}
    result = tasks.echo.enqueue(**words)

    assert tasks.echo.get_result(result.id).kwargs == words


def test_receivers_of_enqueued_tasks_get_the_class_and_cannot_undo_it() -> None:
    heard: list[Any] = []

    def hear(sender: Any, task_result: Any, **_more: Any) -> None:
        heard.append((sender, task_result.id, task_result.enqueued_at is not None))
        raise RuntimeError("a receiver that fails")

    compat.task_enqueued.connect(hear)
    try:
        result = tasks.add.enqueue(1, 2)
    finally:
        compat.task_enqueued.disconnect(hear)

    assert heard == [(type(compat.task_backends["default"]), result.id, True)]
    assert Run.objects.count() == 1


def test_extra_fields_of_a_result_are_refreshed() -> None:
    result = tasks.add.enqueue(1, 2)
    assert result.run is None
    result.refresh()

    assert result.run.queue == "default"
    assert result.run.spec_hash


def test_results_can_be_pickled_where_django_can() -> None:
    if django.VERSION < (6, 1):
        pytest.skip(ELSEWHERE + "tasks pickle from Django 6.1 on")
    result = tasks.fail.using(timeout="5s").enqueue("x")
    result.refresh()

    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 -- our own bytes.
