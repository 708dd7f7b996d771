# SPDX-License-Identifier: MIT
"""Explains why a payload is refused: the path and what to send instead, never the value."""

import json
import re
from collections.abc import Callable, Iterable
from datetime import date, time, timedelta
from enum import Enum
from math import isfinite
from types import NoneType
from typing import Any, Final

from byrote.core.errors import BadPayload

DEPTH_MAX: Final = 500
"""Levels of nested lists and dicts."""

INT_LENGTH_MAX: Final = 4300
"""Characters an integer may have in JSON, its sign included: the limit of msgspec."""

_INT_MIN: Final = 1 - 10 ** (INT_LENGTH_MAX - 1)
_INT_MAX: Final = 10**INT_LENGTH_MAX - 1
_KEY_SHOWN_MAX: Final = 40
_PATH_SHOWN_MAX: Final = 200
_SURROGATE = re.compile("[\ud800-\udfff]")

_LONE_SURROGATE = "holds a lone surrogate, which has no UTF-8 form; send valid Unicode."
_ADVICE: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (Enum, "its .value"),  # First: an enum may also be an int or a str.
    ((bytes, bytearray, memoryview), "base64 text"),
    ((set, frozenset, tuple), "a list"),
    ((date, time), "its isoformat() string"),
    (timedelta, "its total_seconds()"),
    (dict, "dict(x)"),
    (list, "list(x)"),
    (str, "str(x)"),
    (int, "int(x)"),
    (float, "float(x)"),
    (object, "a dict of plain values"),
)
_WRITTEN_AS_TEXT: Final = frozenset({"decimal", "ipaddress", "pathlib", "uuid"})
"""Modules whose values `str` represents completely."""

type Trail = tuple[Trail, str | int] | None
"""The steps to a part of a value, the last one first."""


class Members(list[tuple[str, Any]]):
    """The members of a JSON object as written, a key given twice included."""

    __slots__ = ()


def find_fault(value: object) -> BadPayload | None:
    """Returns the first part of `value`, in reading order, that JSON would not return exactly."""
    pending: list[tuple[object, Trail, int]] = [(value, None, 0)]
    while pending:
        node, trail, depth = pending.pop()
        if reason := _reason(node, depth):
            return BadPayload(path_text(trail), reason)
        children = [(child, (trail, step), depth + 1) for step, child in _children(node)]
        pending.extend(reversed(children))
    return None


def _children(node: Any) -> Iterable[tuple[str | int, object]]:
    cls = type(node)
    if cls is list:
        return enumerate(node)
    if cls is dict:
        return node.items()  # type: ignore[no-any-return]  # Checked by cls.
    return node if cls is Members else ()


def _reason(node: Any, depth: int) -> str | None:
    cls = type(node)
    if cls not in _CHECKS:
        return not_plain(cls)
    if depth >= DEPTH_MAX and cls in (list, dict, Members):
        return f"Nested over {DEPTH_MAX} levels deep; send a flatter value or a reference."
    return _CHECKS[cls](node)


def _string_reason(text: str) -> str | None:
    return f"The string {_LONE_SURROGATE}" if _SURROGATE.search(text) else None


def _int_reason(number: int) -> str | None:
    if _INT_MIN <= number <= _INT_MAX:
        return None
    return f"An integer is over {INT_LENGTH_MAX:,} characters long; send it as a string."


def _float_reason(number: float) -> str | None:
    if isfinite(number):
        return None
    return (
        "NaN, infinities and numbers beyond a float's range have no exact JSON form; "
        "send null or a string."
    )


def _no_reason(_node: object) -> None:
    return None


def _key_reason(members: Any) -> str | None:
    seen = set()
    keys = members if type(members) is dict else [key for key, _ in members]
    for key in keys:
        if type(key) is not str:
            return f"A key is of type {_name(type(key))}; JSON keys are strings, send str(key)."
        if _SURROGATE.search(key):
            return f"A key {_LONE_SURROGATE}"
        if key in seen:
            return f"The key {_shown(key)} is given twice; send it once."
        seen.add(key)
    return None


def not_plain(cls: type) -> str:
    """Why a value of this type is refused, and what to send instead."""
    advice = next(advice for types, advice in _ADVICE if issubclass(cls, types))
    if any(_package(base) in _WRITTEN_AS_TEXT for base in cls.__mro__):
        advice = "str(x)"
    return f"A value of type {_name(cls)} would not come back as it was sent; send {advice}."


def _package(cls: type) -> str:
    return cls.__module__.partition(".")[0].removeprefix("_")


def _name(cls: type) -> str:
    return cls.__name__[:_KEY_SHOWN_MAX]


def trail_of(steps: Iterable[str | int]) -> Trail:
    """Returns the trail of these steps, in reading order."""
    trail: Trail = None
    for step in steps:
        trail = (trail, step)
    return trail


def path_text(trail: Trail) -> str:
    """Returns a path as errors show it: `$.address.zip`."""
    steps = []
    while trail is not None:
        trail, step = trail
        steps.append(_step(step))
    path = "$" + "".join(reversed(steps))
    if len(path) <= _PATH_SHOWN_MAX:
        return path
    half = _PATH_SHOWN_MAX // 2
    return f"{path[:half]}...{path[-half:]}"


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    plain = step.isascii() and step.isidentifier() and len(step) <= _KEY_SHOWN_MAX
    return f".{step}" if plain else f"[{_shown(step)}]"


def _shown(key: str) -> str:
    # Escaped to ASCII, so that the message itself can always be logged and stored.
    cut = key if len(key) <= _KEY_SHOWN_MAX else key[:_KEY_SHOWN_MAX] + "..."
    return json.dumps(cut)


_CHECKS: Final[dict[type, Callable[[Any], str | None]]] = {
    NoneType: _no_reason,
    bool: _no_reason,
    int: _int_reason,
    float: _float_reason,
    str: _string_reason,
    list: _no_reason,
    dict: _key_reason,
    Members: _key_reason,
}
