# SPDX-License-Identifier: MIT
"""Results that answer later runs: for how long, and what counts as the same code.

The same code is the same function (bytecode, constants, defaults) in a file of the same content: a
helper beside the function counts, one in another module does not. Too many hashes only cost a
computation; too few would give an answer of code that is no more.

The same arguments are more than the same spec hash, in which `1` and `1.0` are one number: a
function can tell them apart, so `memo_key` does, too.
"""

from datetime import timedelta
from hashlib import sha256

import msgspec

from byrote.core.duration import duration
from byrote.core.errors import BadOption
from byrote.core.json.codec import unpack

_encode = msgspec.json.Encoder().encode

KEEP_MIN = timedelta(seconds=1)
KEEP_MAX = timedelta(days=3_660)


class Memo(msgspec.Struct, frozen=True):
    """By which code a result came about, and for how many microseconds it is kept."""

    code: str
    keep_us: int


def memo_key(code: str, spec_text: str) -> str:
    """What a result is stored and looked up by, beside the spec's hash: code and arguments.

    Numbers count with their type and sign, members of objects with their order; the order of
    keyword arguments does not count.
    """
    spec = unpack(spec_text)
    form = _encode([spec["args"], sorted(spec["kwargs"].items())])
    return sha256(code.encode() + b" " + form).hexdigest()


def memo_keep(value: timedelta | str | float) -> timedelta:
    """Read how long results answer later runs."""
    keep = duration(value)
    if not KEEP_MIN <= keep <= KEEP_MAX:
        raise BadOption(f"A memo is kept between 1 second and 10 years, not {value!r}.")
    return keep


def memo_code(function: str, module: str | None) -> str | None:
    """The hash of code that can be the same elsewhere; None when its file is unknown."""
    return None if module is None else sha256(f"{function} {module}".encode()).hexdigest()
