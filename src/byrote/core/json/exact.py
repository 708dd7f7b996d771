# SPDX-License-Identifier: MIT
"""The exact form of a call's arguments: one form for what a function cannot distinguish.

The canonical form writes `1` and `1.0`, `0` and `-0.0`, `10**16` and `1e16` alike, since they are
equal in JSON. A function can distinguish them, so memos and steps compare this form instead.
Numbers count with their type and sign, members of objects with their order; the order of keyword
arguments does not count.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def exact_form(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """Returns the exact form of arguments that `codec.pack` accepts."""
    return _encode([list(args), sorted(kwargs.items())])
