# SPDX-License-Identifier: MIT
"""The verbs of people who look after runs, as `queries.py` has those of the path of a run."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from byrote.core.answer import Locked
from byrote.store.query import Query, Resend
from byrote.store.rows import id_from

CAP = 1_000
"""Beyond this, a list for people says "many"."""
HISTORY_MAX = 500
NAMES_MAX = 500


class Moment(msgspec.Struct, frozen=True):
    """One thing that happened to a run."""

    at: datetime
    kind: str
    attempt: int
    worker: str | None
    leased_until: datetime | None
    data: dict[str, Any]


def _moment_from(row: tuple[Any, ...]) -> Moment:
    at, kind, attempt, worker, leased_until, text = row
    data = {} if text is None else msgspec.json.decode(text)
    return Moment(at, kind, attempt, worker, leased_until, data)


def timeline(
    run_id: str, *, first: datetime, last: datetime | None, limit: int = HISTORY_MAX
) -> Query[Moment]:
    """What happened to a run between two moments; `last` absent is now."""
    args = {"id": run_id, "first": first, "last": last, "limit": limit}
    return Query("timeline", args, _moment_from)


def names(*, limit: int = NAMES_MAX) -> Query[tuple[str, str]]:
    """Names worth narrowing a list to: pairs of `queue` or `task` and the name."""
    return Query("names", {"limit": limit}, lambda row: (row[0], row[1]))


def remove(ids: Sequence[str]) -> Query[str | Locked]:
    """Delete finished runs and what belongs to them; returns the ids of those it deleted."""
    return Query("remove", {"ids": list(ids)}, id_from, Resend.ONCE)


def patience(limit: timedelta) -> Query[str]:
    """Let no statement of the transaction take longer than this."""
    millis = max(limit // timedelta(milliseconds=1), 1)
    return Query("patience", {"limit": str(millis)}, lambda row: str(row[0]))
