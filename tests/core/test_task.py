# SPDX-License-Identifier: MIT
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from byrote.core.errors import BadArguments, BadOption, DuplicateTask, UnknownTask
from byrote.core.spec import Delivery
from byrote.core.task import Registry, Task, make_task

pytestmark = pytest.mark.pure


def task_of(function: Callable[..., Any], name: str | None = None, version: int = 1) -> Task:
    return make_task(function, name=name, version=version, delivery=Delivery())


def plain(a: int, b: int = 2, *, c: int = 3) -> int:
    return a + b + c


def needs_keyword(*, c: int) -> int:
    return c


def with_context(ctx: Any, a: int) -> None: ...


def context_last(a: int, ctx: Any) -> None: ...


def open_ended(*args: int, **kwargs: int) -> None: ...


def positional(a: int, /, b: int) -> None: ...


async def later(ctx: Any) -> None: ...


FITS = [
    (plain, (1,), {}),
    (plain, (1, 2), {"c": 3}),
    (plain, (), {"a": 1}),
    (plain, (), {"a": 1, "b": 2, "c": 3}),
    (needs_keyword, (), {"c": 1}),
    (with_context, (1,), {}),
    (with_context, (), {"a": 1}),
    (open_ended, (1, 2, 3), {"x": 1}),
    (positional, (1, 2), {}),
    (positional, (1,), {"b": 2}),
    (later, (), {}),
]
MISFITS = [
    (plain, (), {}),
    (plain, (1, 2, 3), {}),
    (plain, (1,), {"a": 1}),
    (plain, (), {"a": 1, "x": 1}),
    (plain, (), {"b": 1}),
    (needs_keyword, (1,), {}),
    (needs_keyword, (), {}),
    (with_context, (), {"ctx": 1, "a": 1}),
    (with_context, (1, 2), {}),
    (positional, (), {"a": 1, "b": 2}),
    (later, (1,), {}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), FITS)
def test_arguments_that_fit_pass(function: Any, args: Any, kwargs: Any) -> None:
    task_of(function).check(args, kwargs)


@pytest.mark.parametrize(("function", "args", "kwargs"), MISFITS)
def test_arguments_that_do_not_fit_are_refused_while_the_sender_listens(
    function: Any, args: Any, kwargs: Any
) -> None:
    with pytest.raises(BadArguments, match=function.__name__):
        task_of(function).check(args, kwargs)


@pytest.mark.parametrize("function", [plain, needs_keyword, with_context, open_ended, positional])
def test_the_short_way_to_check_arguments_agrees_with_python(function: Any) -> None:
    task = task_of(function)
    names = [name for count in range(4) for name in itertools.combinations("abcx", count)]
    for count, given in itertools.product(range(5), names):
        args, kwargs = tuple(range(count)), dict.fromkeys(given, 0)
        try:
            task.signature.bind(*args, **kwargs)
        except TypeError:
            with pytest.raises(BadArguments):
                task.check(args, kwargs)
        else:
            task.check(args, kwargs)


def test_a_first_parameter_named_ctx_receives_the_context() -> None:
    assert task_of(with_context).takes_context
    assert task_of(later).takes_context
    assert not task_of(plain).takes_context
    assert not task_of(context_last).takes_context


def test_a_task_knows_whether_it_is_async() -> None:
    assert (task_of(later).is_async, task_of(plain).is_async) == (True, False)


def test_a_task_is_named_after_its_module_and_function_by_default() -> None:
    assert task_of(plain).key == f"{__name__}.plain@1"
    assert task_of(plain, name="shop.add", version=3).key == "shop.add@3"


@pytest.mark.parametrize("version", [0, -1, 1.0, True, "1", 2**31])
def test_a_version_is_a_whole_number_from_one(version: Any) -> None:
    with pytest.raises(BadOption, match="version"):
        task_of(plain, version=version)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(BadOption, match="<lambda>"):
        task_of(lambda: None)


class Shop:
    def open(self) -> None: ...


def counting() -> Iterator[int]:
    yield 1


async def counting_later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (Shop, "The class Shop is not a function"),
        (Shop().open, r"The method Shop\.open has an object.*decorate a function"),
        (counting, "counting is a generator.*return a list"),
        (counting_later, "counting_later is a generator"),
        (partial(plain, 1), "is not a function; define one"),
        ("mail", "'mail' is not a function"),
    ],
)
def test_what_is_not_a_function_is_refused_where_it_is_written(function: Any, advice: str) -> None:
    with pytest.raises(BadOption, match=advice):
        task_of(function)


def test_tasks_are_found_by_name_and_version() -> None:
    registry = Registry()
    for version in (1, 10, 2):
        registry.add(task_of(plain, "plain", version))

    assert registry.find("plain", 2).version == 2
    assert registry.keys == ["plain@1", "plain@10", "plain@2"]
    assert len(registry) == 3


def test_an_unknown_task_is_refused_with_what_is_known() -> None:
    registry = Registry()
    registry.add(task_of(plain, "plain"))

    with pytest.raises(UnknownTask, match=r"plain@2.*known here: plain@1"):
        registry.find("plain", 2)
    with pytest.raises(UnknownTask, match=r"os\.system"):
        registry.find("os.system", 1)


def test_two_functions_under_one_name_are_refused() -> None:
    registry = Registry()
    registry.add(task_of(plain, name="x"))

    with pytest.raises(DuplicateTask, match=r"x@1.*plain.*needs_keyword"):
        registry.add(task_of(needs_keyword, name="x"))
    assert registry.find("x", 1).function is plain


def test_two_functions_from_one_factory_under_one_name_are_refused() -> None:
    """They share their qualified name; losing one of them in silence would be worse."""

    def factory(n: int) -> Callable[[], int]:
        def inner() -> int:
            return n

        return inner

    registry = Registry()
    registry.add(task_of(factory(1)))
    with pytest.raises(DuplicateTask):
        registry.add(task_of(factory(2)))


def test_the_same_function_may_be_added_again() -> None:
    registry = Registry()
    registry.add(task_of(plain))
    registry.add(task_of(plain))

    assert len(registry) == 1
