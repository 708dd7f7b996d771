# SPDX-License-Identifier: MIT
from collections.abc import Callable
from typing import Any

import pytest

from byrote import App, RunHandle
from tests.tasks.api import echo, remembered


def test_async_producers_are_answered_too(
    tasks: App, drain: Callable[[], None], run_async: Callable[..., object]
) -> None:
    first = remembered.enqueue([1])
    drain()

    async def ask() -> list[tuple[str, str | None]]:
        one = await remembered.aenqueue([1])
        many = await tasks.aenqueue_many([echo.spec(1), remembered.spec([1]), remembered.spec(2)])
        assert await one.aresult(timeout=0) == [1]
        found = [await run.arefresh() for run in (one, *many)]
        return [(run.status.value, run.memo_of) for run in found]

    answered, computed = ("SUCCESSFUL", first.id), ("READY", None)
    assert run_async(ask) == [answered, computed, answered, computed]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, -0.0),
        (0.0, -0.0),
        (10**16, 1e16),
        ([{"n": 2}], [{"n": 2.0}]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_arguments_that_only_have_the_same_hash_are_computed(
    tasks: App, drain: Callable[[], None], one: Any, other: Any
) -> None:
    """Both results are remembered, each for its own arguments."""
    first = remembered.enqueue(one)
    drain()
    second = remembered.enqueue(other)

    assert second.status == "READY"
    drain()
    answered = [remembered.enqueue(value).refresh() for value in (one, other)]
    assert [run.memo_of for run in answered] == [first.id, second.id]
    assert [repr(run.result) for run in answered] == [repr(one), repr(other)]


def test_a_memo_of_nothing_is_an_answer(tasks: App, drain: Callable[[], None]) -> None:
    remembered.enqueue(None)
    drain()
    run: RunHandle[None] = remembered.enqueue(None)

    assert run.status == "SUCCESSFUL"
    assert run.result(timeout=0) is None


def test_a_task_without_a_memo_is_computed_each_time(tasks: App, drain: Callable[[], None]) -> None:
    echo.enqueue(1)
    drain()

    assert echo.enqueue(1).status == "READY"
