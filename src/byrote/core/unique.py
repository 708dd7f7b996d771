# SPDX-License-Identifier: MIT
"""Unique keys: what counts as one, and how a function of a task's arguments gives it.

While a run with a key is unfinished, its task accepts no other with the same one. A key is a way of
delivery: it is not part of what is computed, and so not of the spec's hash.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final

from byrote.core.errors import BadOption

UNIQUE_KEY_MAX: Final = 200
"""Characters of a key."""

type KeyOf = Callable[..., str | None]
"""Takes those of a task's parameters that it names, and gives a call's key; None: it has none."""

type UniqueKey = str | KeyOf
"""A key, or what gives one for each call."""

type CallKey = Callable[[tuple[Any, ...], dict[str, Any]], str | None]
"""Gives the key of a call from its arguments as they were written."""


def check_key(key: object) -> str:
    """A key that every door and the index can take."""
    if isinstance(key, str) and 0 < len(key) <= UNIQUE_KEY_MAX and key.isprintable():
        return key
    raise BadOption(
        f"A unique key is a text of 1 to {UNIQUE_KEY_MAX} printable characters, "
        f"not {repr(key)[:80]}. Leave it out, or give None, for a run without one."
    )


def call_key(key_of: KeyOf, signature: inspect.Signature, task: str) -> CallKey:
    """What gives the keys of a task's calls; BadOption if it asks for what the task has not."""
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
        # Bound to their names: however a call is written, the same arguments give the same key.
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return key_of(**{name: bound.arguments[name] for name in names})

    return key


def _parameters(key_of: KeyOf) -> list[inspect.Parameter] | None:
    """What a function takes by name; None if it does not say, or takes anything."""
    try:
        found = list(inspect.signature(key_of).parameters.values())
    except ValueError:  # Some of those that are written in C.
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return found if all(p.kind in named for p in found) else None


def _open_ended(signature: inspect.Signature) -> bool:
    kinds = {p.kind for p in signature.parameters.values()}
    return bool(kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})
