# SPDX-License-Identifier: MIT
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import pytest

from byrote.core.errors import BadPayload
from byrote.core.json.codec import pack, unpack
from byrote.core.spec import Delivery
from byrote.core.task import Task, make_task
from byrote.core.typed.converter import Converter, converter_of
from tests.tasks import typed
from tests.tasks.typed import EXACT, Address, Color, Customer, Login, Order

if TYPE_CHECKING:
    from nowhere import Unknown

pytestmark = pytest.mark.pure

ORDER = Order(UUID(int=1), Decimal("9.90"), Address(3000), frozenset("cab"))


def task_of(function: Callable[..., Any]) -> Task:
    return make_task(function, name=None, version=1, delivery=Delivery())


def converter(hint: Any) -> Converter:
    found = converter_of(hint, {})
    assert found is not None
    return found


@pytest.mark.parametrize(("hint", "value", "sent"), EXACT)
def test_a_value_of_an_annotated_type_comes_back_exactly(hint: Any, value: Any, sent: Any) -> None:
    plain = converter(hint).dump(value)
    back = converter(hint).load(unpack(pack(plain).text))

    assert plain == sent
    assert list(plain) == list(sent) if isinstance(sent, dict) else True
    assert (back, type(back)) == (value, type(value))


def test_nested_dataclasses_come_back_exactly() -> None:
    order = Order(UUID(int=2), Decimal(1), Address(1, "Basel"), parent=ORDER, extra=[{"a": 1}])

    assert converter(Order).load(converter(Order).dump(order)) == order


def test_a_value_that_contains_itself_is_refused() -> None:
    order = Order(UUID(int=2), Decimal(1), Address(1))
    order.parent = order

    with pytest.raises(BadPayload, match=r"^\$: The value contains itself"):
        converter(Order).dump(order)


@pytest.mark.parametrize(
    "value",
    [
        UUID(int=1),
        Decimal("1.5"),
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, tzinfo=UTC),
        time(1, 2),
        timedelta(seconds=-1.5),
    ],
)
def test_subclasses_of_simple_types_are_sent_as_their_base(value: Any) -> None:
    """Drivers return such: the UUID of asyncpg, for example."""
    base = type(value)
    odd = type("Odd", (base,), {})
    arguments = (str(value),) if base in (UUID, Decimal) else value.__reduce__()[1]

    assert converter(base).load(converter(base).dump(odd(*arguments))) == value


def test_pydantic_models_are_converted_by_pydantic() -> None:
    customer = Customer(name="Ann", since=datetime(2026, 1, 1, tzinfo=UTC), address=Address(1))
    plain = converter(Customer).dump(customer)

    assert plain["since"] == "2026-01-01T00:00:00Z"
    assert converter(Customer).load(plain) == customer
    assert converter(list[Customer]).load([plain]) == [customer]


@pytest.mark.parametrize(
    "hint",
    [
        None,
        Any,
        int,
        str,
        list[int],
        dict[str, Any],
        dict[str, list[float | None]],
        bool | None,
        Literal["a", "b"],
        object,
    ],
)
def test_plain_annotations_have_no_converter(hint: Any) -> None:
    assert converter_of(hint, {}) is None


@pytest.mark.parametrize(
    "hint", [str | Path, UUID | str, date | datetime, converter, complex, Callable[[], int], "a b"]
)
def test_annotations_that_cannot_be_converted_count_as_any(hint: Any) -> None:
    """JSON does not distinguish a path from a text, so values of such classes are refused."""
    assert converter_of(hint, {}) is None


MISFITS: list[tuple[Any, Any, str, str]] = [
    (Order, Order(UUID(int=1), Decimal(1), Address("1")), "$.address.zip", "int; str"),  # type: ignore[arg-type]
    (Order, Order(UUID(int=1), Decimal(1), Address(True)), "$.address.zip", "int; bool"),
    (Order, Order("x", Decimal(1), Address(1)), "$.id", "UUID; str"),  # type: ignore[arg-type]
    (Order, {"id": "x"}, "$", "Order; dict"),
    (Order | None, Order(UUID(int=1), 1.5, Address(1)), "$.amount", "Decimal; float"),  # type: ignore[arg-type]
    (Order | None, 5, "$", "Order | None; int"),
    (UUID, str(UUID(int=1)), "$", "UUID; str"),
    (date, datetime(2026, 1, 1, tzinfo=UTC), "$", "date; datetime"),
    (Color, "red", "$", "Color; str"),
    (set[int], [1], "$", "set; list"),
    (tuple[int, date], (1,), "$", "2 items, not of 1"),
    (list[UUID], [UUID(int=1), None], "$[1]", "UUID; None"),
    (dict[str, Path], {"a b": "x"}, '$["a b"]', "Path; str"),
    (Login, Login(user="a", pin="b"), "$", "does not come back"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("hint", "value", "path", "reason"), MISFITS)
def test_a_value_that_does_not_fit_is_refused_with_its_path(
    hint: Any, value: Any, path: str, reason: str
) -> None:
    with pytest.raises(BadPayload) as caught:
        converter(hint).dump(value)

    assert caught.value.path == path
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("hint", "plain", "path"),
    [
        (Order, {"id": "x"}, "$.id"),
        (Customer, {"name": 1, "since": "2026-01-01T00:00:00Z", "address": {"zip": 1}}, "$.name"),
        (list[Customer], [{"name": "a", "since": "x", "address": {"zip": 1}}], "$[0].since"),
        (dict[int, date], {"x": "2026-01-01"}, "$"),
        (list[Path], [1], "$[0]"),
    ],
)
def test_json_that_does_not_fit_is_refused_in_the_worker(hint: Any, plain: Any, path: str) -> None:
    with pytest.raises(BadPayload) as caught:
        converter(hint).load(plain)

    assert caught.value.path == path


def test_each_parameter_is_converted_by_its_own_annotation() -> None:
    def mixed(a: date, b: Any, *more: Decimal, c: int, d: UUID, **rest: Color) -> None: ...

    task = task_of(mixed)
    args = (date(2026, 1, 1), [1], Decimal(1))
    kwargs = {"c": 1, "d": UUID(int=0), "e": Color.RED}
    assert task.arguments is not None
    sent = task.arguments.dump(args, kwargs)

    assert sent == (["2026-01-01", [1], "1"], {"c": 1, "d": str(UUID(int=0)), "e": "red"})
    assert task.arguments.load(*sent) == (list(args), kwargs)
    with pytest.raises(BadPayload, match=r"^\$\.more\[1\]: .*Decimal; int was given"):
        task.arguments.dump((*args, 5), kwargs)


def test_a_task_of_plain_types_pays_nothing() -> None:
    task = typed.app.registry.find("plain", 1)

    assert (task.arguments, task.result) == (None, None)


def test_names_for_the_type_checker_only_affect_no_other_parameter() -> None:
    def half(a: Unknown, b: date) -> Unknown: ...

    task = task_of(half)
    assert task.arguments is not None

    assert task.arguments.dump(([1], date(2026, 1, 1)), {}) == ([[1], "2026-01-01"], {})


def uses_a_later_class(value: Later) -> Later:
    return value


EARLY = task_of(uses_a_later_class)


@dataclass
class Later:
    at: date


def test_a_class_may_be_defined_after_the_task() -> None:
    assert EARLY.arguments is not None

    sent = EARLY.arguments.dump((Later(date(2026, 1, 1)),), {})
    assert sent == ([{"at": "2026-01-01"}], {})
    assert EARLY.arguments.load(*sent)[0] == [Later(date(2026, 1, 1))]
