# SPDX-License-Identifier: MIT
"""Memos: results that are reused for later runs of the same spec by the same code.

The same code is the same function (bytecode, constants, defaults) in a file of the same content: a
helper beside the function counts, one in another module does not. Too many hashes only cost a
computation; too few would return results of code that was changed.

The same arguments are more than the same spec hash, in which `1` and `1.0` are one number: a
function can distinguish them, so `memo_key` hashes the exact form (`core/json/exact.py`).
"""

from datetime import timedelta
from hashlib import sha256

import msgspec

from byrote.core.duration import duration
from byrote.core.errors import BadOption
from byrote.core.json.codec import unpack
from byrote.core.json.exact import exact_form

KEEP_MIN = timedelta(seconds=1)
KEEP_MAX = timedelta(days=3_660)


class Memo(msgspec.Struct, frozen=True):
    """The code that computed a result, and for how many microseconds the result is kept."""

    code: str
    keep_us: int


def memo_key(code: str, spec_text: str) -> str:
    """Returns the key of a result beside the spec's hash: a hash of code and exact arguments."""
    spec = unpack(spec_text)
    form = exact_form(spec["args"], spec["kwargs"])
    return sha256(code.encode() + b" " + form).hexdigest()


def memo_keep(value: timedelta | str | float) -> timedelta:
    """Parse how long results are reused. Raises BadOption outside of 1 second to 10 years."""
    keep = duration(value)
    if not KEEP_MIN <= keep <= KEEP_MAX:
        raise BadOption(f"A memo is kept between 1 second and 10 years, not {value!r}.")
    return keep


def memo_code(function: str, module: str | None) -> str | None:
    """Returns the hash of the code, comparable between hosts; None if its file is unknown."""
    return None if module is None else sha256(f"{function} {module}".encode()).hexdigest()
