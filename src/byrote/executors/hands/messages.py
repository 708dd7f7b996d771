# SPDX-License-Identifier: MIT
"""What hands say, checked before it is believed: they run others' code, which may say anything.

A hand that says what nobody understands loses its life, like one that crashes; what it had been
given is judged as after any crash, and the worker goes on.
"""

from typing import Any

import msgspec

from byrote.core.command import Command
from byrote.core.errors import ByroteError
from byrote.core.memo import Memo
from byrote.core.schedule.schedule import Schedule

GARBLED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What reading something of the wrong shape raises."""


class MalformedMessage(ByroteError):
    """A hand has said what nobody understands."""

    code = "garbled"


class Introduction(msgspec.Struct, frozen=True):
    """What a hand says of itself before its first run, see `loading.introduction`."""

    tasks: dict[str, bool]
    commands: dict[str, Command]
    url: str | None
    provenance: dict[str, Any]
    memos: dict[str, Memo]
    ignores: dict[str, list[str]]
    hears: bool = False
    """Whether the app wants to know how its attempts were settled."""
    schedules: list[Schedule] = []
    """What the app would have run periodically."""
    queues: list[str] = []
    """Where its runs lie unless somebody says otherwise."""


class Question(msgspec.Struct, frozen=True, array_like=True):
    """What an attempt asks of its supervisor."""

    slot: int
    number: int
    verb: str
    payload: dict[str, Any]


def introduction_from(told: object) -> Introduction:
    """Read an introduction."""
    return _as(Introduction, told)


def question_from(asked: object) -> Question:
    """Read a question."""
    return _as(Question, asked)


def reason_from(told: object) -> str:
    """Read why a hand cannot start."""
    return _as(str, told)


def _as[T](kind: type[T], said: object) -> T:
    try:
        return msgspec.convert(said, kind)
    except GARBLED as error:
        raise MalformedMessage(f"{type(error).__name__}: {error}") from None
