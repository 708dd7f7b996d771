# SPDX-License-Identifier: MIT
"""Which database errors pass by themselves, and how to wait for it. None costs an attempt."""

from collections.abc import Callable
from enum import Enum

import psycopg


class Remedy(Enum):
    """What to do about a database error."""

    RETRY = "retry"
    """Ask again on the same connection."""
    RECONNECT = "reconnect"
    """Ask again on a new connection; whether the last statement took effect is unknown."""
    RAISE = "raise"
    """A person has to look."""


RETRIED = frozenset(
    {
        "40001",  # serialisation failure
        "40P01",  # deadlock
        "55P03",  # lock not available
        "57014",  # statement timeout
        "53100",  # disk full: heals when somebody makes room
        "53200",  # out of memory
        "53400",  # configuration limit exceeded
    }
)
RECONNECTED = frozenset(
    {
        "25006",  # read-only: a failover in progress, or an operator's hand
        "57P01",  # admin shutdown
        "57P02",  # crash shutdown
        "57P03",  # cannot connect now: starting up, in recovery
        "57P05",  # idle session timeout
        "25P03",  # idle in transaction timeout
        "53300",  # too many connections
        "25P02",  # a transaction already failed: start afresh
    }
)


def remedy(error: psycopg.Error) -> Remedy:
    """Classify a database error by its SQLSTATE, or by its class where the server could not say."""
    code = error.sqlstate
    if code in RETRIED:
        return Remedy.RETRY
    if code in RECONNECTED or (code or "").startswith("08"):
        return Remedy.RECONNECT
    if code is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        # No SQLSTATE: the connection itself broke, or was closed under us.
        return Remedy.RECONNECT
    return Remedy.RAISE


BACKOFF_FIRST = 0.05
BACKOFF_MAX = 3.0


def pause_before(attempt: int, chance: Callable[[], float]) -> float:
    """Seconds to wait before try number `attempt` (2, 3, …): full jitter spreads a herd out."""
    ceiling: float = min(BACKOFF_FIRST * 2 ** min(attempt - 2, 20), BACKOFF_MAX)
    return ceiling * chance()
