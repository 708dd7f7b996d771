# SPDX-License-Identifier: MIT
"""Errors of a task caused by a database outage: no session available, or the server went away.

Neither is charged as an attempt. If the server has no free session, connecting is retried for
`PATIENCE_S` inside the task, which loses nothing; after that, or if the server cannot be reached,
the run waits, uncharged. If a session is cut off during a task, the run is returned to its queue,
uncharged, and counted as a loss: ten losses end a run, because a statement that crashes the server
must not be repeated forever.

`pg_terminate_backend`, called by an operator or by the task, ends a session with the same error
(57P01). So this error counts as an outage only if the server was started after the attempt, or
cannot be reached. If the task converts an error to an exception of another kind, it is a failure of
the task.
"""

import time
from typing import Any, Literal

import psycopg
from django.db import Error, InterfaceError, OperationalError, connections

from byrote.assembly.clock import monotonic
from byrote.django.backend.database import fetch
from byrote.django.worker.sessions import drop
from byrote.store.queries.database import uptime

type Outage = Literal["refused", "cut"]
"""`refused`: no session was available; `cut`: a session ended during the task."""

WAITS_S = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.7)
PATIENCE_S = sum(WAITS_S)
"""How long a thread tries to get a session, 10 s in all, before the run waits instead."""
DELAY_MAX_S = 60.0
MARGIN_S = 1.0
"""Tolerance when an attempt's duration is compared with the server's uptime."""
FULL = ("too many clients", "too many connections", "connection slots are reserved")
CONNECTING = (
    "connection failed", "connection is bad", "connection timeout expired",
    "multiple connection attempts failed",
)  # fmt: skip
"""Beginnings of psycopg's messages about a failed connection attempt."""
FULL_POOL = "couldn't get a connection after"
AWAY = (
    "connection refused", "connection reset", "broken pipe", "timeout expired",
    "no such file or directory", "no route to host", "network is unreachable",
    "temporary failure in name resolution", "closed unexpectedly", "closed the connection",
    "the database system is", "terminating connection", "canceling authentication",
    "server login has been failing", "pgbouncer cannot connect to server",
)  # fmt: skip
"""Transient reasons for a failed connection attempt. A server that stops also ends sessions that
are just being established, with the same message as for any other session."""
SILENT = (
    "server closed the connection unexpectedly", "connection is lost", "consuming input failed",
    "could not receive data", "could not send data", "connection has been closed unexpectedly",
)  # fmt: skip
CLOSED = ("connection is closed", "connection already closed")
GOING = frozenset({"57P02", "57P03"})
"""SQLSTATEs: another server process crashed; the server is starting up or shutting down."""
SHUT_DOWN = "57P01"


def may_be_outage(error: BaseException) -> bool:
    """Whether to call `outage_of`: a database error, or a group that contains one."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(may_be_outage, error.exceptions))
    return isinstance(error, Error | psycopg.Error)


def outage_of(error: BaseException, begun: float) -> Outage | None:
    """Return the outage that ended an attempt that began at `begun`; None if it was the task."""
    match error:
        case BaseExceptionGroup():
            return next((o for e in error.exceptions if (o := outage_of(e, begun))), None)
        case Error() | psycopg.Error():
            cause = error.__cause__ if isinstance(error.__cause__, psycopg.Error) else error
            return _outage(cause, str(cause).lower(), begun)
        case _:
            return None


def _outage(error: BaseException, text: str, begun: float) -> Outage | None:
    errors = (psycopg.OperationalError, psycopg.InterfaceError, OperationalError, InterfaceError)
    if not isinstance(error, errors):
        return None
    state = getattr(error, "sqlstate", None)
    if state is None and _is_refusal(text):
        return "refused"
    if state in GOING or (state or "").startswith("08"):
        return "cut"
    if state is None and any(words in text for words in SILENT):
        return "cut"
    doubtful = state == SHUT_DOWN or (state is None and any(words in text for words in CLOSED))
    return "cut" if doubtful and _was_restarted(monotonic() - begun) else None


def _is_refusal(text: str) -> bool:
    if any(words in text for words in CONNECTING):
        return any(words in text for words in (*FULL, *AWAY))
    return FULL_POOL in text


def _was_restarted(elapsed_s: float) -> bool:
    """Whether a server that this thread used is unreachable or was restarted meanwhile."""
    for connection in connections.all(initialized_only=True):
        if connection.vendor != "postgresql":
            continue
        drop(connection)
        try:
            [lived_s] = fetch(connection.alias, uptime())
        except (InterfaceError, OperationalError):
            return True
        if lived_s < elapsed_s + MARGIN_S:
            return True
    return False


def delay_of(attempt: int) -> float:
    """Seconds that a run waits for a session: longer with each attempt, at most a minute."""
    return float(min(2.0 ** min(attempt, 10), DELAY_MAX_S))


def ask_patiently() -> None:
    """Patch Django to retry connecting to a server without a free session, before raising."""
    from django.db.backends.postgresql.base import DatabaseWrapper  # noqa: PLC0415 -- few need it.

    connect = DatabaseWrapper.get_new_connection
    if getattr(connect, "patient", False):
        return

    def get_new_connection(self: Any, conn_params: Any) -> Any:
        for wait in WAITS_S:
            try:
                return connect(self, conn_params)
            except psycopg.OperationalError as error:
                if not any(words in str(error).lower() for words in FULL):
                    raise
            time.sleep(wait)
        return connect(self, conn_params)

    get_new_connection.patient = True  # type: ignore[attr-defined]
    DatabaseWrapper.get_new_connection = get_new_connection
