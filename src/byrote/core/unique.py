# SPDX-License-Identifier: MIT
"""Unique keys: which texts are valid, and how a function of a task's arguments returns one.

While a run with a key is unfinished, its task accepts no other with the same one. A key belongs
to the delivery: it is not part of what is computed, and so not of the spec's hash.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final

from byrote.core.errors import BadOption

UNIQUE_KEY_MAX: Final = 200
"""Characters of a key."""

type KeyOf = Callable[..., str | None]
"""Receives the task's parameters that it names; returns the call's key, or None for no key."""

type UniqueKey = str | KeyOf
"""A key, or a function that returns one for each call."""

type CallKey = Callable[[tuple[Any, ...], dict[str, Any]], str | None]
"""Returns the key of a call from its arguments as they were written."""


def check_key(key: object) -> str:
    """Returns the key if every API and the index accept it, else raises BadOption."""
    if isinstance(key, str) and 0 < len(key) <= UNIQUE_KEY_MAX and key.isprintable():
        return key
    raise BadOption(
        f"A unique key is a string of 1 to {UNIQUE_KEY_MAX} printable characters, "
        f"not {repr(key)[:80]}. Leave it out, or pass None, for a run without one."
    )


def call_key(key_of: KeyOf, signature: inspect.Signature, task: str) -> CallKey:
    """Returns a function for the keys of calls. Raises BadOption for unknown parameters."""
    wanted = _parameters(key_of)
    if wanted is None or _open_ended(signature):
        return lambda args, kwargs: key_of(*args, **kwargs)
    known = signature.parameters
    strange = [p.name for p in wanted if p.name not in known and p.default is p.empty]
    if strange:
        raise BadOption(
            f"The unique_key of {task} takes {strange[0]!r}, which {task}{signature} does not; "
            "name parameters of the task."
        )
    names = [p.name for p in wanted if p.name in known]

    def key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        # Bound to their names, so that the same arguments have one key however the call is written.
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return key_of(**{name: bound.arguments[name] for name in names})

    return key


def _parameters(key_of: KeyOf) -> list[inspect.Parameter] | None:
    """Returns the named parameters of a function; None if they are unknown or variadic."""
    try:
        found = list(inspect.signature(key_of).parameters.values())
    except ValueError:  # Some functions written in C.
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return found if all(p.kind in named for p in found) else None


def _open_ended(signature: inspect.Signature) -> bool:
    kinds = {p.kind for p in signature.parameters.values()}
    return bool(kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})
