# SPDX-License-Identifier: MIT
"""Byrote without its event log: what the log costs is the difference (`python -m bench.events`)."""

import re
from functools import cache

from byrote.store import query

_TOLD = re.compile(rb",\n\w+ as \(\n  insert into byrote_events.*?\n\)(?=[,\n])", re.DOTALL)
_whole = query.statement


@cache
def silent(name: str) -> bytes:
    """The statement's text, without the part that writes its event."""
    return _TOLD.sub(b"", _whole(name))


def fall_silent() -> None:
    """Write no events from now on in this process."""
    query.statement = silent  # type: ignore[assignment]
