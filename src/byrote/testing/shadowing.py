# SPDX-License-Identifier: MIT
"""Replaces attributes of one object for the length of a block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def shadowed(owner: object, **attributes: Any) -> Iterator[None]:
    """Set attributes of an instance, and restore what it had itself afterwards."""
    own = vars(owner)
    before = {name: own[name] for name in attributes if name in own}
    own.update(attributes)
    try:
        yield
    finally:
        for name in attributes:
            own.pop(name, None)
        own.update(before)
