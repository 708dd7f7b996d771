# SPDX-License-Identifier: MIT
"""Types that msgspec does not convert by itself: paths, and classes of pydantic.

Pydantic is not a dependency and is never imported here: a class of pydantic was imported by the
project, so its package is in `sys.modules`.
"""

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Any

import msgspec

from byrote.core.errors import BadPayload
from byrote.core.json.refusal import path_text, trail_of


def is_supported(cls: type) -> bool:
    """Whether values of the class can be converted both ways."""
    return isinstance(cls, type) and (issubclass(cls, PurePath) or _is_pydantic(cls))


def fits(cls: type, value: object) -> bool:
    """Whether a value can be sent as this class; a subclass of a model would lose its fields."""
    return isinstance(value, cls) if issubclass(cls, PurePath) else type(value) is cls


def dump(cls: Any, value: Any) -> Any:
    """Returns a value of a supported class as plain JSON."""
    if issubclass(cls, PurePath):
        return str(value)
    plain = _adapter(cls).dump_python(value, mode="json", by_alias=True, warnings=False)
    # Pydantic masks secrets and leaves out excluded fields.
    if _fields(load(cls, plain)) != _fields(value):
        raise BadPayload("$", f"This {cls.__name__} does not come back from JSON as it was sent.")
    return plain


def load(cls: Any, plain: Any) -> Any:
    """Returns the value of a supported class. Raises BadPayload with the path in the value."""
    if issubclass(cls, PurePath):
        if type(plain) is not str:
            raise BadPayload("$", f"Expected {cls.__name__}, got {type(plain).__name__}.")
        return cls(plain)
    try:
        return _adapter(cls).validate_json(msgspec.json.encode(plain))
    except ValueError as error:
        raise _refusal(error) from None


def _is_pydantic(cls: type) -> bool:
    return "pydantic" in sys.modules and hasattr(cls, "__get_pydantic_core_schema__")


@lru_cache(maxsize=1_000)
def _adapter(cls: Any) -> Any:
    return sys.modules["pydantic"].TypeAdapter(cls)


def _fields(value: Any) -> Any:
    return getattr(value, "__dict__", value)


def _refusal(error: Any) -> BadPayload:
    """Pydantic's first error: its path and its message, without the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    steps: Sequence[str | int] = first["loc"]
    return BadPayload(path_text(trail_of(steps)), f"{first['msg']}.")
