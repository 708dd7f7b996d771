# SPDX-License-Identifier: MIT
"""Messages that hands and commands have in common: an app's introduction, and asks.

Both run user code, which may write anything to the socket, so messages are validated when they are
decoded.
"""

from typing import Any

import msgspec

from byrote.core.command import Command
from byrote.core.errors import ByroteError
from byrote.core.memo import Memo
from byrote.core.ports.app import Announced
from byrote.core.ports.hooks import HookWants
from byrote.core.schedule.schedule import Schedule

GARBLED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""Exceptions that reading malformed data may raise."""


class MalformedMessage(ByroteError):
    """A hand or a command sent a message that is not part of the protocol."""

    code = "garbled"


class Introduction(msgspec.Struct, frozen=True):
    """Describes a hand's app before its first run, see `loading.introduction`."""

    tasks: dict[str, bool]
    """Whether each task is async."""
    commands: dict[str, Command]
    url: str | None
    provenance: dict[str, Any]
    memos: dict[str, Memo]
    ignores: dict[str, list[str]]
    wants_finished: bool = False
    """Whether the app wants reports of stored outcomes."""
    schedules: list[Schedule] = []
    """The app's periodic tasks."""
    announced: Announced = Announced()
    hooks: HookWants = HookWants()
    """What the app's hooks need to know."""
    schema: str | None = None
    """The schema that the app names."""


class Question(msgspec.Struct, frozen=True, array_like=True):
    """A request that an attempt sends to its supervisor."""

    slot: int
    number: int
    verb: str
    payload: dict[str, Any]


def question_from(asked: object) -> Question:
    """Decode a command's ask; raises MalformedMessage."""
    try:
        return msgspec.convert(asked, Question)
    except GARBLED as error:
        raise MalformedMessage(f"{type(error).__name__}: {error}") from None
