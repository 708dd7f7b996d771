# SPDX-License-Identifier: MIT
"""Scripts get the same answers, errors and end from both runners."""

import asyncio
from collections.abc import Callable, Generator

import pytest

from byrote.core.ports.script import arun_script, run_script

type Sums = Generator[int, int, int]


def awaited(script: Sums, answer: Callable[[int], int]) -> int:
    async def later(request: int) -> int:
        await asyncio.sleep(0)
        return answer(request)

    return asyncio.run(arun_script(script, later))


RUNNERS = pytest.mark.parametrize("run", [run_script, awaited])


class Refused(Exception):
    """The answer to a request is an error."""


def refuse(request: int) -> int:
    raise Refused(request)


def total(size: int) -> Sums:
    found = 0
    for number in range(size):
        found += yield number
    return found


@RUNNERS
@pytest.mark.parametrize(("size", "found"), [(0, 0), (1, 0), (4, 60)])
def test_a_script_receives_each_answer_and_returns(
    run: Callable[..., int], size: int, found: int
) -> None:
    assert run(total(size), lambda number: number * 10) == found


@RUNNERS
def test_an_error_is_raised_where_the_script_asked(run: Callable[..., int]) -> None:
    def script() -> Sums:
        try:
            return (yield 7)
        except Refused as error:
            return int(error.args[0])

    assert run(script(), refuse) == 7


@RUNNERS
def test_an_error_the_script_does_not_handle_reaches_the_caller(run: Callable[..., int]) -> None:
    """The script's own clean-up has been done by then."""
    ended = []

    def script() -> Sums:
        try:
            return (yield 7)
        finally:
            ended.append(True)

    with pytest.raises(Refused):
        run(script(), refuse)
    assert ended == [True]


@RUNNERS
def test_a_stop_iteration_of_an_answer_is_not_the_scripts_end(run: Callable[..., int]) -> None:
    def exhausted(request: int) -> int:
        raise StopIteration(request)

    with pytest.raises(RuntimeError):
        run(total(1), exhausted)
