# SPDX-License-Identifier: MIT
"""Arguments and results come back bit by bit, or are refused before any SQL."""

import enum
import itertools
from collections import OrderedDict, deque, namedtuple
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, models
from django.test.utils import CaptureQueriesContext
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from byrote.core.json.codec import pack, unpack
from byrote.core.json.refusal import DEPTH_MAX
from byrote.django.backend.values import plain
from byrote.django.models import Run
from tests.django.shop import tasks

Point = namedtuple("Point", "x y")  # noqa: PYI024 -- as people still write them.


class Colour(models.TextChoices):
    RED = "r"


class Size(enum.IntEnum):
    LARGE = 3


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (1e22, 1e22),
        (-0.0, -0.0),
        (0.1 + 0.2, 0.1 + 0.2),
        (2**70, 2**70),
        (5e-324, 5e-324),
        ("\x00 é 😀 \u2028", "\x00 é 😀 \u2028"),
        ("x" * 1_000_000, "x" * 1_000_000),
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (deque([1]), [1]),
        (range(3), [0, 1, 2]),
        (b"text", "text"),
        (bytearray(b"ab"), [97, 98]),
        (Colour.RED, "r"),
        (Size.LARGE, 3),
        (SafeString("<b>"), "<b>"),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        ({None: "b", True: "c", 2.5: "d"}, {"null": "b", "true": "c", "2.5": "d"}),
        ({7: "a"}, {"7": "a"}),
        (nested(300), nested(300)),
    ],
    ids=itertools.count(),
)
def test_what_django_takes_comes_back_as_a_worker_sees_it(sent: Any, stored: Any) -> None:
    result = tasks.echo.enqueue(sent, key=sent)
    found = tasks.echo.get_result(result.id)

    assert repr(found.args) == repr(result.args) == repr([stored])
    assert repr(found.kwargs["key"]) == repr(stored)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("\ud800", ValueError),
        ({"\udfff": 1}, ValueError),
        (b"\xff", ValueError),
        (nested(DEPTH_MAX + 10), ValueError),
        ("x" * 5_000_000, ValueError),
        (10**5_000, ValueError),
        ({1: "a", "1": "b"}, ValueError),
        (datetime.now(UTC), TypeError),
        (Decimal("1.1"), TypeError),
        (UUID(int=1), TypeError),
        ({1, 2}, TypeError),
        ((n for n in range(2)), TypeError),
        (gettext_lazy("lazy"), TypeError),
        (object(), TypeError),
        ({(1, 2): 3}, TypeError),
        ({float("nan"): 3}, TypeError),
    ],
    ids=itertools.count(),
)
def test_what_cannot_be_stored_is_refused_before_any_sql(bad: Any, kind: type[Exception]) -> None:
    with CaptureQueriesContext(connection) as queries, pytest.raises(kind):
        tasks.echo.enqueue({"deep": [bad]})

    assert len(queries) == 0


def test_what_refers_to_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(ValueError, match="levels deep"):
        tasks.echo.enqueue(loop)


def test_the_hash_does_not_depend_on_the_order_of_keys() -> None:
    tasks.echo.enqueue(x={"b": 1, "a": 2})
    tasks.echo.enqueue(x={"a": 2, "b": 1})

    [one, other] = Run.objects.all()
    assert bytes(one.spec_hash) == bytes(other.spec_hash)
    assert one.spec_json != other.spec_json


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(VALUES)
def test_a_plain_value_stays_what_it_is(value: Any) -> None:
    assert repr(plain(value)) == repr(value)
    assert repr(unpack(pack(plain(value)).text)) == repr(value)


@given(VALUES)
def test_tuples_all_the_way_down_become_lists(value: Any) -> None:
    assert repr(plain(as_tuples(value))) == repr(value)


def as_tuples(value: Any) -> Any:
    match value:
        case list():
            return tuple(as_tuples(item) for item in value)
        case dict():
            return {key: as_tuples(item) for key, item in value.items()}
        case _:
            return value
