# SPDX-License-Identifier: MIT
"""Reads the values of settings as people write them: in a variable, a file or an option.

The type of a field is the one truth about its values: `msgspec.convert` checks choices and limits.
Durations, sizes and lists of queues have their own notation, and a parser here.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import inspect

from byrote.core.duration import duration
from byrote.core.errors import BadOption
from byrote.core.json.codec import PAYLOAD_MAX
from byrote.core.spec import check_name
from byrote.core.text.schema_name import checked_schema

SWITCHES = {"yes": True, "on": True, "no": False, "off": False}
"""Words for true and false beside those that msgspec reads."""
WEIGHT_MAX = 1_000
_SHOWN_CHARACTERS = 100


def read_value(name: str, type_: Any, raw: Any) -> Any:
    """Return the value of a setting of this type; raises ValueError with what to write instead."""
    if name in PARSERS:
        return PARSERS[name](raw)
    wanted = _present(inspect.type_info(type_))
    given = raw.strip() if isinstance(raw, str) else raw
    if isinstance(wanted, inspect.BoolType) and isinstance(given, str):
        given = SWITCHES.get(given.lower(), given)
    try:
        # Without the None of an optional field: msgspec would read the text `null` as None.
        return msgspec.convert(given, _without_none(type_), strict=False)
    except msgspec.ValidationError:
        raise ValueError(f"{_advice(wanted)}, not {shown(raw)}") from None


def shown(raw: object) -> str:
    """A value as messages quote it, shortened."""
    text = repr(raw)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _present(type_: inspect.Type) -> inspect.Type:
    if not isinstance(type_, inspect.UnionType):
        return type_
    return next(one for one in type_.types if not isinstance(one, inspect.NoneType))


def _without_none(type_: Any) -> Any:
    members = [one for one in getattr(type_, "__args__", ()) if one is not type(None)]
    return members[0] if type(None) in getattr(type_, "__args__", ()) else type_


def _advice(wanted: inspect.Type) -> str:
    match wanted:
        case inspect.LiteralType(values=choices):
            return f"choose one of {', '.join(map(str, choices))}"
        case inspect.IntType(ge=least, le=most):
            return f"write a whole number from {least} to {most}"
        case inspect.BoolType():
            return "write true or false"
        case _:
            return "write a text"


def read_queues(raw: Any) -> dict[str, int]:
    """Parse queues and weights from `mail=3,default`, a list, or a table."""
    if isinstance(raw, Mapping):
        pairs = [(name, weight) for name, weight in raw.items()]
    else:
        parts = raw.split(",") if isinstance(raw, str) else list(raw)
        pairs = [tuple(part.strip().partition("=")[::2]) for part in parts if part.strip()]
    queues = {check_name("queue", name): _weight(weight) for name, weight in pairs}
    if not queues:
        raise ValueError("name at least one queue, for example 'default' or 'mail=3,default'")
    return queues


def _weight(raw: Any) -> int:
    weight = 1 if raw == "" else int(raw)
    if not 1 <= weight <= WEIGHT_MAX:
        raise ValueError(f"a queue's weight is a number from 1 to {WEIGHT_MAX}, not {raw}")
    return weight


def read_size(raw: Any) -> int:
    """Parse bytes from `512MB`, `2GB`, `64KB` or a number."""
    text = str(raw).strip().upper().removesuffix("B").removesuffix("I")
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    if not digits.isdigit():
        raise ValueError(f"write a size like 512MB or 2GB, not {raw!r}")
    if int(digits) < 1:
        raise ValueError(f"a size is at least 1 byte, not {raw!r}")
    return int(digits) * factor


def read_payload_max(raw: Any) -> dict[str, int]:
    """Parse sizes by queue from `4MB,media=16MB`, a single size, or a table."""
    if isinstance(raw, Mapping):
        pairs = [(name, size) for name, size in raw.items()]
    else:
        parts = [part.strip() for part in str(raw).split(",") if part.strip()]
        pairs = [_pair(part) for part in parts]
    sizes = {
        name if name == "*" else check_name("queue", name): read_size(size) for name, size in pairs
    }
    return {"*": PAYLOAD_MAX, **sizes}


def _pair(part: str) -> tuple[str, str]:
    name, equals, size = part.partition("=")
    return (name.strip(), size) if equals else ("*", name)


def _lease(raw: Any) -> timedelta:
    lease = duration(raw)
    if lease < timedelta(seconds=1):
        raise ValueError(f"a lease shorter than a second cannot be renewed in time; not {raw}")
    return lease


def _keep_events(raw: Any) -> timedelta:
    kept = duration(raw)
    if kept < timedelta(days=1):
        raise ValueError(f"events are dropped by the day, so keep them for at least 1d; not {raw}")
    return kept


def _schema(raw: Any) -> str:
    try:
        return checked_schema(raw)
    except BadOption as error:
        raise ValueError(str(error)) from None


PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "queues": read_queues,
    "worker_id": lambda raw: check_name("worker", raw),
    "schema": _schema,
    "lease": _lease,
    "grace": duration,
    "enqueue_patience": duration,
    "poll_interval": duration,
    "max_rss": read_size,
    "payload_max": read_payload_max,
    "artifact_max": read_size,
    "keep_events": _keep_events,
}
"""Parsers of the settings that have their own notation."""
