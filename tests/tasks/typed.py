# SPDX-License-Identifier: MIT
"""Tasks whose arguments and results have types of the project."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
from pydantic import BaseModel, SecretStr

from byrote import App

app = App()


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Address:
    zip: int
    city: str = "Bern"


@dataclass
class Order:
    id: UUID
    amount: Decimal
    address: Address
    tags: frozenset[str] = frozenset()
    parent: "Order | None" = None
    extra: Any = None


class Point(NamedTuple):
    x: float
    y: float


class Row(TypedDict, total=False):
    at: date
    note: str


class Cat(msgspec.Struct, tag=True, rename="camel"):
    name_full: str
    home: Path


class Dog(msgspec.Struct, tag=True, array_like=True):
    legs: dict[int, timedelta]


class Box[T](msgspec.Struct):
    item: T


class Customer(BaseModel):
    name: str
    since: datetime
    address: Address


class Login(BaseModel):
    user: str
    pin: SecretStr


@app.task
def ship(order: Order, *, due: date | None = None) -> Order:
    """Return the order, with the types that it found."""
    order.extra = [type(order.address).__name__, type(due).__name__]
    return order


@app.task
async def greet(customer: Customer) -> tuple[str, Customer]:
    return customer.name.upper(), customer


@app.task(memo="1h", unique_key=lambda colors: "+".join(sorted(one.name for one in colors)))
def mix(colors: set[Color]) -> set[Color]:
    return colors


@app.task
def wrong(value: Any) -> date:
    return value  # type: ignore[no-any-return]


@app.task
def nothing() -> date | None:
    return None


@app.task
def plain(a: int, b: list[dict[str, float | None]]) -> dict[str, Any]:
    return {"a": a, "b": b}


EXACT: list[tuple[Any, Any, Any]] = [
    (UUID, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Decimal, Decimal("1.50"), "1.50"),
    (date, date(2026, 11, 1), "2026-11-01"),
    (time, time(1, 2, 3), "01:02:03"),
    (timedelta, timedelta(days=-1, microseconds=3), "-PT86399.999997S"),
    (bytes, b"\x00\xff", "AP8="),
    (Path, Path("a/b"), "a/b"),
    (Color, Color.RED, "red"),
    (tuple[int, date], (1, date(2026, 1, 2)), [1, "2026-01-02"]),
    (tuple[int, ...], (1, 2), [1, 2]),
    (set[str], {"c", "a", "b"}, ["a", "b", "c"]),
    (frozenset[UUID], frozenset([UUID(int=0)]), ["00000000-0000-0000-0000-000000000000"]),
    (list[Color], [Color.BLUE], ["blue"]),
    (dict[int, Decimal], {2: Decimal(1), 1: Decimal(2)}, {"2": "1", "1": "2"}),
    (dict[UUID, int], {UUID(int=0): 1}, {"00000000-0000-0000-0000-000000000000": 1}),
    (Decimal | None, None, None),
    (int | UUID, 5, 5),
    (Point, Point(1.0, 2.0), [1.0, 2.0]),
    (Row, {"at": date(2026, 1, 2)}, {"at": "2026-01-02"}),
    (Cat, Cat("Tom", Path("x")), {"type": "Cat", "nameFull": "Tom", "home": "x"}),
    (Dog, Dog({4: timedelta(seconds=1)}), ["Dog", {"4": "PT1S"}]),
    (Box[date], Box(date(2026, 1, 2)), {"item": "2026-01-02"}),
]
"""Annotation, value, and the JSON that is sent."""
