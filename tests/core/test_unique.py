# SPDX-License-Identifier: MIT
"""Valid unique keys, and functions that return one for each call."""

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from byrote.core.errors import BadOption, KeyContended
from byrote.core.spec import Delivery, describe
from byrote.core.unique import UNIQUE_KEY_MAX, call_key, check_key

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("key", ["x", "report:2026-11", "über 日本 🚀", "k" * UNIQUE_KEY_MAX])
def test_a_key_is_any_short_printable_text(key: str) -> None:
    assert check_key(key) == key
    assert Delivery(unique_key=key).unique_key == key


@pytest.mark.parametrize(
    "key", ["", "k" * (UNIQUE_KEY_MAX + 1), "a\x00b", "a\nb", "\ud800", 5, True, b"x", ["x"]]
)
def test_anything_else_is_refused_with_what_to_give_instead(key: Any) -> None:
    with pytest.raises(BadOption, match="1 to 200 printable characters, not"):
        Delivery(unique_key=key)


def test_a_key_is_not_part_of_the_hash() -> None:
    with_key = describe("t", 1, [], {}, delivery=Delivery(unique_key="k"))

    assert with_key.digest == describe("t", 1, [], {}, delivery=Delivery()).digest


def report(month: str, region: str = "eu", *, force: bool = False) -> None:
    """A task with every ordinary kind of parameter."""


def open_ended(month: str, *more: str, **others: str) -> None:
    """A task that takes anything."""


def keys(key_of: Callable[..., Any], task: Callable[..., Any], *calls: Any) -> list[Any]:
    key = call_key(key_of, inspect.signature(task), task.__name__)
    return [key(args, kwargs) for args, kwargs in calls]


def test_a_function_takes_what_it_names_however_the_call_is_written() -> None:
    calls = ((("11",), {}), ((), {"month": "11"}), (("11", "eu"), {"force": True}))

    assert keys(lambda month: month, report, *calls) == ["11"] * 3
    assert keys(lambda region, month: f"{month}:{region}", report, *calls) == ["11:eu"] * 3


def test_a_function_may_return_its_own_text_or_no_key() -> None:
    def key(month: str, force: bool, prefix: str = "report") -> str | None:
        return None if force else f"{prefix}:{month}"

    calls = ((("11",), {}), (("11",), {"force": True}))
    assert keys(key, report, *calls) == ["report:11", None]


def test_a_function_of_a_task_that_takes_anything_gets_the_call_as_it_is() -> None:
    def key(month: str, **others: str) -> str:
        return month + others.get("region", "")

    assert keys(key, open_ended, (("11",), {"region": "eu"})) == ["11eu"]
    assert keys(lambda month: month, open_ended, ((), {"month": "11"})) == ["11"]


def test_a_function_of_something_the_task_has_not_is_refused_when_it_is_defined() -> None:
    with pytest.raises(BadOption, match=r"takes 'year', which report\(month.* does not"):
        call_key(lambda year: year, inspect.signature(report), "report")


def test_the_error_of_a_contended_key_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(KeyContended("k")))  # noqa: S301 -- our own.

    assert (error.key, error.code) == ("k", "key_contended")
