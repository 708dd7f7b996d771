# SPDX-License-Identifier: MIT
"""Which database errors are temporary, and how long to wait. None costs an attempt."""

import re
from collections.abc import Callable
from enum import Enum

import psycopg

LOCK_NOT_AVAILABLE = "55P03"


class Remedy(Enum):
    """The response to a database error."""

    RETRY = "retry"
    """Retry on the same connection."""
    RECONNECT = "reconnect"
    """Retry on a new connection; whether the last statement took effect is unknown."""
    RAISE = "raise"
    """Needs a person's attention."""


RETRIED = frozenset(
    {
        "40001",  # serialisation failure
        "40P01",  # deadlock
        LOCK_NOT_AVAILABLE,
        "57014",  # statement timeout
        "53100",  # disk full: passes when an operator frees space
        "53200",  # out of memory
        "53400",  # configuration limit exceeded
    }
)
RECONNECTED = frozenset(
    {
        "25006",  # read-only: a failover in progress, or set by an operator
        "57P01",  # admin shutdown
        "57P02",  # crash shutdown
        "57P03",  # cannot connect now: starting up, in recovery
        "57P05",  # idle session timeout
        "25P03",  # idle in transaction timeout
        "53300",  # too many connections
        "25P02",  # a transaction already failed: open another connection
    }
)


DENIED = "42501"
"""The role lacks a right. A worker that has worked retries: an operator may grant it."""
UNWILLING = frozenset({DENIED, "25006"})
"""Errors that mean a wrong set-up when a starting worker meets them."""


def remedy(error: psycopg.Error) -> Remedy:
    """Classify a database error by its SQLSTATE, or by its class if it has none."""
    code = error.sqlstate
    if code in RETRIED:
        return Remedy.RETRY
    if code in RECONNECTED or (code or "").startswith("08"):
        return Remedy.RECONNECT
    if code is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        # No SQLSTATE: the connection broke, or was closed during the statement.
        return Remedy.RECONNECT
    return Remedy.RAISE


LACKS_RIGHTS = (
    "`byrote doctor` shows which role this login needs for it; `byrote roles --sql` prints them."
)
READ_ONLY = (
    "The server is a standby, or default_transaction_read_only is on. Connect to the primary; "
    "`target_session_attrs=read-write` in the URL chooses it among several hosts."
)


def advice(code: str | None) -> str:
    """Return what a person can do about a refusal, by its SQLSTATE; empty if unknown."""
    match code:
        case "42501":
            return LACKS_RIGHTS
        case "25006":
            return READ_ONLY
        case _:
            return ""


_LOGIN_REFUSALS = (
    (
        re.compile(r'database "(.+)" does not exist'),
        "The database {0!r} does not exist. Run `createdb {0}`, and then `byrote migrate`.",
    ),
    (
        re.compile(r'role "(.+)" does not exist'),
        "The role {0!r} does not exist. Run `createuser {0}`, or name another user in the URL.",
    ),
    (
        re.compile(r'password authentication failed for user "(.+)"'),
        "The password of {0!r} is wrong. Correct the URL or PGPASSWORD.",
    ),
)


def login_advice(text: str) -> str | None:
    """Return what to do about a refused login, by libpq's message; None if it may be temporary.

    libpq reports no SQLSTATE for a refused login. A server whose messages are not in English is
    therefore treated as one that does not answer.
    """
    for pattern, todo in _LOGIN_REFUSALS:
        if found := pattern.search(text):
            return todo.format(found[1])
    return None


def is_open(error: BaseException | None) -> bool:
    """Whether the error leaves open if the statement took effect: the connection broke."""
    code = getattr(error, "sqlstate", None)
    return code is None or code.startswith(("08", "57P"))


BACKOFF_FIRST = 0.05
BACKOFF_MAX = 3.0


def pause_before(attempt: int, jitter: Callable[[], float]) -> float:
    """Seconds to wait before try number `attempt` (2, 3, …), with full jitter."""
    ceiling: float = min(BACKOFF_FIRST * 2 ** min(attempt - 2, 20), BACKOFF_MAX)
    return ceiling * jitter()
