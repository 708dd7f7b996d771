# SPDX-License-Identifier: MIT
"""Queries of the registry of workers."""

from collections.abc import Mapping
from typing import Any

import msgspec

from byrote.store import rows
from byrote.store.query import Query


def register(description: Mapping[str, Any]) -> Query[str]:
    """Announce a worker; no row when its name is another holder's."""
    return Query("register", {"holder": None, **description}, lambda row: str(row[0]))


def heartbeat(
    *,
    worker: str,
    idle: bool,
    stopping: bool,
    running: int,
    finished: int,
    holder: str | None = None,
) -> Query[str]:
    """Say that a worker lives."""
    args: dict[str, Any] = {"worker": worker, "holder": holder, "idle": idle}
    args |= {"stopping": stopping, "running": running, "finished": finished}
    return Query("heartbeat", args, lambda row: str(row[0]))


def idle(*, worker: str, idle: bool) -> Query[str]:
    """Ask to be woken, or stop asking."""
    return Query("idle", {"worker": worker, "idle": idle}, lambda row: str(row[0]))


def deregister(*, worker: str, holder: str | None = None) -> Query[str]:
    """Take a worker off the list."""
    args = {"worker": worker, "holder": holder}
    return Query("deregister", args, lambda row: str(row[0]))


def workers() -> Query[rows.WorkerRow]:
    """Every worker that has not been forgotten."""
    return Query("workers", {}, lambda row: rows.WorkerRow(*row))


class Owned(msgspec.Struct, frozen=True):
    """Whose a worker is, and what it serves."""

    holder: str | None
    queues: list[str]
    tasks: list[str]


def worker_owner(name: str) -> Query[Owned]:
    """Whose the worker of this name is; no row when nobody has registered it."""
    return Query("worker_owner", {"worker": name}, lambda row: Owned(*row))
