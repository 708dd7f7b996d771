# SPDX-License-Identifier: MIT
"""The error of a step's function as it is recorded, and as later attempts and replays raise it.

A class is only looked up in modules that are imported already, never imported: the record is data.
"""

import sys
from typing import Any

from byrote.core.errors import (
    BadPayload,
    LeaseLost,
    NonDeterminism,
    NotRecorded,
    Snooze,
    StepFailed,
)
from byrote.core.json.codec import Packed, pack, unpack
from byrote.core.outcome import safe_text

ARGS_MAX = 64 * 1024
"""Bytes of JSON of an error's arguments that are stored; of larger ones only the message is."""
BASES_MAX = 20
_OURS = (Snooze, NonDeterminism, NotRecorded, LeaseLost)
"""Exceptions that are not errors of the step: the attempt ends, or is postponed."""


def is_ours(error: Exception) -> bool:
    """Whether an error ends the attempt, or postpones it, instead of failing the step."""
    return isinstance(error, _OURS)


def stored_error(error: Exception) -> Packed | None:
    """An error as JSON: its class and bases, arguments and message; None for our own."""
    if is_ours(error):
        return None
    cls = type(error)
    try:
        message = safe_text(str(error))
    except Exception:  # noqa: BLE001 -- str() of a user's error may raise anything.
        message = ""
    names: dict[str, Any] = {
        "module": safe_text(cls.__module__),
        "class": safe_text(cls.__qualname__),
        "bases": [
            [safe_text(base.__module__), safe_text(base.__qualname__)]
            for base in cls.__mro__[1:BASES_MAX]
            if issubclass(base, Exception) and base is not Exception
        ],
    }
    try:
        return pack({**names, "args": list(error.args), "message": message}, limit=ARGS_MAX)
    except BadPayload:
        return pack({**names, "args": [message], "message": message})


def recorded_error(text: str) -> Exception:
    """The stored error; NotRecorded if its class is not imported."""
    stored: dict[str, Any] = unpack(text)
    found = _known(stored["module"], stored["class"])
    if found is None:
        path = f"{stored['module']}.{stored['class']}"
        return NotRecorded(f"The recorded step raised {path}, and this process has no such class.")
    return _built(found, stored["args"])


def failed_error(text: str) -> Exception:
    """The stored error as its nearest imported base class; StepFailed if there is none."""
    stored: dict[str, Any] = unpack(text)
    for module, name in [(stored["module"], stored["class"]), *stored.get("bases", [])]:
        found = _known(module, name)
        if found is not None:
            return _built(found, stored["args"])
    return StepFailed(f"{stored['module']}.{stored['class']}", stored["message"])


def _known(module: str, name: str) -> type[Exception] | None:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _built(cls: type[Exception], args: list[Any]) -> Exception:
    try:
        return cls(*args)
    except Exception:  # noqa: BLE001 -- a constructor that wants more than `args` holds.
        error = cls.__new__(cls)
        error.args = tuple(args)
        return error
