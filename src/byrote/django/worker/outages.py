# SPDX-License-Identifier: MIT
"""Errors of a task that are the database's: no session to be had, or the server went away under it.

Neither costs the run an attempt. A server without a free session is asked again for `PATIENCE_S`
where the task asks for a connection, which loses nothing; then, or when the server cannot be
reached, the run waits, uncharged. When a session is cut off under a task the run is given back,
uncharged, and counted as a loss: ten of those end a run, since a statement that takes the server
down must not be repeated for ever.

A session may also end by somebody's wish, `pg_terminate_backend` or the task's own: the server says
the same words then (57P01). So these count only if the server was started after the attempt had
begun, or cannot be reached. What a task makes of an error itself, such as an exception of its own,
is its failure.
"""

import threading
from typing import Any, Literal

import psycopg
from django.db import Error, InterfaceError, OperationalError, connections

from byrote.assembly.clock import monotonic
from byrote.django.backend.database import fetch
from byrote.django.worker.sessions import drop
from byrote.store.queries.database import uptime

type Outage = Literal["refused", "cut"]
"""`refused`: there is no session to be had; `cut`: one ended under the task."""

WAITS_S = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.7)
PATIENCE_S = sum(WAITS_S)
"""How long a thread asks for a session, 10 s in all, before the run waits instead."""
DELAY_MAX_S = 60.0
MARGIN_S = 1.0
"""By how much an attempt may seem shorter than the server's life that began under it."""
FULL = ("too many clients", "too many connections", "connection slots are reserved")
CONNECTING = (
    "connection failed", "connection is bad", "connection timeout expired",
    "multiple connection attempts failed",
)  # fmt: skip
"""How psycopg begins what it says of a connection that could not be made."""
FULL_POOL = "couldn't get a connection after"
AWAY = (
    "connection refused", "connection reset", "broken pipe", "timeout expired",
    "no such file or directory", "no route to host", "network is unreachable",
    "temporary failure in name resolution", "closed unexpectedly", "closed the connection",
    "the database system is", "terminating connection", "canceling authentication",
    "server login has been failing", "pgbouncer cannot connect to server",
)  # fmt: skip
"""Reasons why no session could be had that pass by themselves. A server that stops also ends the
sessions that it is just admitting, with the same words as any other."""
SILENT = (
    "server closed the connection unexpectedly", "connection is lost", "consuming input failed",
    "could not receive data", "could not send data", "connection has been closed unexpectedly",
)  # fmt: skip
CLOSED = ("connection is closed", "connection already closed")
GOING = frozenset({"57P02", "57P03"})
"""Crash of another process of the server; the server is starting up or shutting down."""
SHUT_DOWN = "57P01"

_pause = threading.Event().wait


def may_be_outage(error: BaseException) -> bool:
    """Whether it is worth asking: an error of a database, or a group with one in it."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(may_be_outage, error.exceptions))
    return isinstance(error, Error | psycopg.Error)


def outage_of(error: BaseException, begun: float) -> Outage | None:
    """Whether an attempt that began then was ended by the database; None when it was the task."""
    match error:
        case BaseExceptionGroup():
            return next((o for e in error.exceptions if (o := outage_of(e, begun))), None)
        case Error() | psycopg.Error():
            cause = error.__cause__ if isinstance(error.__cause__, psycopg.Error) else error
            return _outage(cause, str(cause).lower(), begun)
        case _:
            return None


def _outage(error: BaseException, text: str, begun: float) -> Outage | None:
    kinds = (psycopg.OperationalError, psycopg.InterfaceError, OperationalError, InterfaceError)
    if not isinstance(error, kinds):
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
    """Whether a server that this thread has used is away, or has started that lately."""
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
    """Seconds that a run waits for a session: longer with each attempt, a minute at most."""
    return float(min(2.0 ** min(attempt, 10), DELAY_MAX_S))


def ask_patiently() -> None:
    """Let this process ask a server again that has no session left, before a task hears of it."""
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
            _pause(wait)
        return connect(self, conn_params)

    get_new_connection.patient = True  # type: ignore[attr-defined]
    DatabaseWrapper.get_new_connection = get_new_connection
