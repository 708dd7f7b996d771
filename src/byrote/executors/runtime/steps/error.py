# SPDX-License-Identifier: MIT
"""The error of a step's function as it is recorded, and as a replay raises it again.

A class is only looked up in modules that are imported already, never imported: the record is data.
"""

import sys
from typing import Any

from byrote.core.errors import BadPayload, LeaseLost, NonDeterminism, NotRecorded, Snooze
from byrote.core.json.codec import Packed, pack, unpack
from byrote.core.outcome import safe_text

ARGS_MAX = 64 * 1024
"""Bytes of JSON of an error's arguments that are stored; of larger ones only the message is."""
_OURS = (Snooze, NonDeterminism, NotRecorded, LeaseLost)
"""Not what the step did: the attempt ends, or steps aside."""


def stored_error(error: Exception) -> Packed | None:
    """An error as JSON: module, class and arguments, or only the message; None for our own."""
    if isinstance(error, _OURS):
        return None
    kind = type(error)
    try:
        message = safe_text(str(error))
    except Exception:  # noqa: BLE001 -- str() of a user's error may raise anything.
        message = ""
    names = {"module": safe_text(kind.__module__), "class": safe_text(kind.__qualname__)}
    try:
        return pack({**names, "args": list(error.args), "message": message}, limit=ARGS_MAX)
    except BadPayload:
        return pack({**names, "args": [message], "message": message})


def recorded_error(text: str) -> Exception:
    """The error that was stored; NotRecorded where its class is not there."""
    stored: dict[str, Any] = unpack(text)
    path = f"{stored['module']}.{stored['class']}"
    found: Any = sys.modules.get(stored["module"])
    for name in stored["class"].split("."):
        found = getattr(found, name, None)
    if not isinstance(found, type) or not issubclass(found, Exception):
        return NotRecorded(f"The recorded step raised {path}, and this process has no such class.")
    try:
        error = found(*stored["args"])
    except Exception:  # noqa: BLE001 -- a constructor that wants more than `args` holds.
        error = found.__new__(found)
        error.args = tuple(stored["args"])
    return error
