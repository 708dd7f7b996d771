# SPDX-License-Identifier: MIT
"""Values as Django's Tasks take them, made plain: exactly what JSON brings back, or an error.

Django accepts more than JSON has: tuples, bytes, enums, keys that are numbers. What it accepts is
either turned into the value that a worker will see, before anything is stored, or refused here.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from django.utils.functional import LazyObject, Promise, empty

from byrote.core.errors import BadPayload
from byrote.core.json.refusal import DEPTH_MAX, not_plain

_SCALARS = frozenset({type(None), bool, int, float, str})


def plain(value: Any) -> Any:
    """The value as a worker will see it; TypeError or ValueError when JSON has no place for it."""
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
    """What a lazy object, such as `request.user`, stands for."""
    if value._wrapped is empty:  # noqa: SLF001 -- there is no public way to it.
        value._setup()  # noqa: SLF001 -- the same.
    return value._wrapped  # noqa: SLF001 -- the same.


def _refusal(value: Any) -> str:
    from django.db.models import Model, QuerySet  # noqa: PLC0415 -- apps may still be loading.

    kind = type(value).__name__
    match value:
        case Promise():
            return "A lazy text would not come back as it was sent; send str(x)."
        case Model():
            return f"A model instance ({kind}) would not come back as it was sent; send its pk."
        case QuerySet():
            return f"A {kind} would not come back as it was sent; send a list of pks."
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
                f"A key of type {type(key).__name__} has no JSON form; send text as key."
            )


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError("Bytes that are not UTF-8 have no JSON form; send base64 text.") from None


def _too_deep() -> BadPayload:
    return BadPayload(
        "$", f"Nested over {DEPTH_MAX} levels deep; send a flatter value or a reference."
    )
