# SPDX-License-Identifier: MIT
import pytest

from byrote.django import compat
from tests.django.shop import tasks

NOWHERE = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"


@pytest.mark.parametrize("result_id", ["", "nonsense", NOWHERE, NOWHERE * 2, "\x00", None, 5])
def test_a_result_that_is_not_there_does_not_exist(result_id: object) -> None:
    with pytest.raises(compat.TaskResultDoesNotExist):
        compat.task_backends["default"].get_result(result_id)


def test_the_result_of_another_task_is_a_mismatch() -> None:
    result = tasks.echo.enqueue()

    with pytest.raises(compat.TaskResultMismatch):
        tasks.add.get_result(result.id)


def test_results_of_one_alias_are_not_there_for_another() -> None:
    here = tasks.echo.enqueue()
    there = tasks.echo.using(backend="reports").enqueue()

    with pytest.raises(compat.TaskResultDoesNotExist):
        compat.task_backends["reports"].get_result(here.id)
    with pytest.raises(compat.TaskResultDoesNotExist):
        compat.task_backends["default"].get_result(there.id)
    assert compat.task_backends["reports"].get_result(there.id).task.func is tasks.echo.func
