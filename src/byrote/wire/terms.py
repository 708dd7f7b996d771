# SPDX-License-Identifier: MIT
"""Types and limits that all messages share."""

from functools import cache
from typing import Annotated, Any, Final, get_args, get_type_hints

import msgspec

from byrote.core.unique import UNIQUE_KEY_MAX

VERSION: Final = "v1"
"""The first part of every path."""

BATCH_MAX: Final = 1_000
"""Runs, leases or steps in one request."""
PAGE_MAX: Final = 200
"""Entries of one page."""
PAGE: Final = 50
WAIT_MAX_S: Final = 60.0
"""How long one request may wait for something to happen."""
LEASE_MAX_S: Final = 3_600.0
LEASE_S: Final = 30.0
KEY_MAX: Final = 200
"""Characters of an Idempotency-Key."""

# "$(?!\\n)" is the very end both for Python and for ECMA, which has no "\\Z".
_NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.:/-]*[A-Za-z0-9_])?"

type Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=f"^{_NAME}$(?!\\n)")]
"""A name of a task, a queue or a worker."""

type TaskName = Annotated[
    str,
    msgspec.Meta(
        min_length=3,
        max_length=212,
        pattern=f"^{_NAME}@[0-9]{{1,10}}$(?!\\n)",
        description="A task's name and version, as in `send_email@1`.",
    ),
]

type Id = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$(?!\n)",
        description="A UUID.",
    ),
]

type Digest = Annotated[
    str,
    msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)", description="A SHA-256, in hexadecimal."),
]

type Duration = Annotated[
    str, msgspec.Meta(max_length=40, description="Such as `30s`, `10m`, `1h30m`, `250ms`.")
]
type Seconds = Annotated[float, msgspec.Meta(ge=0, le=3_153_600_000)]
type Micros = Annotated[int, msgspec.Meta(ge=0, le=3_153_600_000_000_000)]
type Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
type TaskVersion = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
type Text = Annotated[str, msgspec.Meta(max_length=16_000)]
type UniqueKey = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=UNIQUE_KEY_MAX,
        description="Printable characters; unique among the unfinished runs of a task.",
    ),
]
type Word = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]

PATH_TYPES: Final[dict[str, Any]] = {
    "id": Id,
    "token": Id,
    "hash": Digest,
    "name": Name,
    "worker": Name,
}
"""The types of parameters in paths."""
CASELESS: Final = frozenset({"id", "token", "hash"})
"""Parameters that ignore case."""

JSON_LIST: Final[dict[str, Any]] = {"type": "array", "items": {}}
JSON_OBJECT: Final[dict[str, Any]] = {"type": "object"}


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request; unknown fields are refused, not ignored."""


class Identified(Request, frozen=True, kw_only=True):
    """A request that names runs or leases; ids ignore case, as UUIDs do."""

    def __post_init__(self) -> None:
        for name in id_fields(type(self)):
            given = getattr(self, name)
            if isinstance(given, str):
                msgspec.structs.force_setattr(self, name, given.lower())
            elif isinstance(given, list):
                msgspec.structs.force_setattr(self, name, [one.lower() for one in given])


@cache
def id_fields(cls: type) -> tuple[str, ...]:
    """The fields of a message that hold ids."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(name for name, hint in hints.items() if _holds_ids(hint))


def _holds_ids(hint: Any) -> bool:
    return hint is Id or any(_holds_ids(part) for part in get_args(hint))


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of the service; clients ignore unknown fields."""
