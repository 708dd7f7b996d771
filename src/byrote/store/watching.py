# SPDX-License-Identifier: MIT
"""The verbs of watching a run print: who watches, what is told, what is seen."""

from byrote.core.outcome import Printing
from byrote.core.run import Leased
from byrote.store import rows
from byrote.store.query import Query


def watch(run_id: str) -> Query[rows.Seen | None]:
    """Watch a run for ten seconds; gives what its attempt under way was last seen to print."""
    return Query("watch", {"id": run_id}, rows.seen_from)


def watched() -> Query[str]:
    """Which runs somebody watches now."""
    return Query("watched", {}, lambda row: str(row[0]))


def tell(run: Leased, printed: Printing) -> Query[int]:
    """Tell those who watch a run what its attempt has printed so far; no row when nobody does."""
    args = {"id": run.id, "attempt": run.attempt, **printed._asdict()}
    return Query("tell", args, lambda row: int(row[0]))
