# SPDX-License-Identifier: MIT
"""Converts values that Django's Tasks accept to plain JSON values, or raises an error.

Django accepts more than JSON supports: tuples, bytes, enums, keys that are numbers. A value is
either converted to what a worker will receive, before anything is stored, or refused here.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from django.utils.functional import LazyObject, Promise, empty

from byrote.core.errors import BadPayload
from byrote.core.json.refusal import DEPTH_MAX, not_plain

_SCALARS = frozenset({type(None), bool, int, float, str})


def plain(value: Any) -> Any:
    """Return the value as a worker will receive it; raises TypeError or ValueError if it cannot."""
    try:
        return _plain(value, 0)
    except RecursionError:
        raise _too_deep() from None


def _plain(value: Any, depth: int) -> Any:  # noqa: PLR0911 -- one return per kind of value.
    if type(value) in _SCALARS:
        return value
    if depth > DEPTH_MAX:
        raise _too_deep()
    if isinstance(value, LazyObject):
        return _plain(_unwrapped(value), depth)
    match value:
        case Mapping():
            return _plain_mapping(value, depth)
        case bytes():
            return _text(value)
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case Sequence():
            return [_plain(item, depth + 1) for item in value]
        case _:
            raise TypeError(_refusal(value))


def _unwrapped(value: Any) -> Any:
    """Return the object that a lazy object, such as `request.user`, wraps."""
    if value._wrapped is empty:  # noqa: SLF001 -- Django has no public API for it.
        value._setup()  # noqa: SLF001 -- the same.
    return value._wrapped  # noqa: SLF001 -- the same.


def _refusal(value: Any) -> str:
    from django.db.models import Model, QuerySet  # noqa: PLC0415 -- apps may still be loading.

    name = type(value).__name__
    match value:
        case Promise():
            return "A lazy text cannot be stored as JSON; send str(x)."
        case Model():
            return f"A model instance ({name}) cannot be stored as JSON; send its pk."
        case QuerySet():
            return f"A {name} cannot be stored as JSON; send a list of pks."
        case _:
            return not_plain(type(value))


def _plain_mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str else _key(key)
        if name in members:
            raise ValueError(f"Two keys become {name!r} in JSON; send one of them.")
        members[name] = _plain(item, depth + 1)
    return members


def _key(key: Any) -> str:
    """A key as json.dumps writes it."""
    match key:
        case str():
            return str.__str__(key)
        case bytes():
            return _text(key)
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
        case int():
            return int.__repr__(key)
        case float() if isfinite(key):
            return float.__repr__(key)
        case _:
            raise TypeError(
                f"A key of type {type(key).__name__} cannot be stored as JSON; use a string key."
            )


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError(
            "Bytes that are not UTF-8 cannot be stored as JSON; send base64 text."
        ) from None


def _too_deep() -> BadPayload:
    return BadPayload(
        "$", f"Nested over {DEPTH_MAX} levels deep; send a flatter value or a reference."
    )
