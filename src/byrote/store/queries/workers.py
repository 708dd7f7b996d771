# SPDX-License-Identifier: MIT
"""Queries of the registry of workers."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from byrote.core.ports.announced import AnnouncedTask, TaskPolicy
from byrote.store import rows
from byrote.store.query import Query

SILENT_FOR = timedelta(seconds=45)
"""A worker without a heartbeat for this long counts as gone, and its name is free."""


def register(
    description: Mapping[str, Any], *, silent_for: timedelta = SILENT_FOR
) -> Query[list[str]]:
    """Register a worker; no row if its name belongs to another holder.

    Returns those of its `aliases` that are names of tasks of other live workers.
    """
    defaults: dict[str, Any] = {"holder": None, "aliases": [], "silent_for": silent_for}
    policies = msgspec.json.encode(description.get("policies") or {}).decode()
    args = {**defaults, **description, "policies": policies}
    return Query("register", args, lambda row: list(row[1]))


_policies = msgspec.json.Decoder(list[TaskPolicy])


def announced_tasks() -> Query[AnnouncedTask]:
    """The tasks that live workers know, with the policies that they announce of each."""
    return Query(
        "announced_tasks", {}, lambda row: AnnouncedTask(row[0], row[1], _policies.decode(row[2]))
    )


def heartbeat(
    *,
    worker: str,
    idle: bool,
    stopping: bool,
    running: int,
    finished: int,
    holder: str | None = None,
) -> Query[list[str]]:
    """Record that a worker is alive; returns what `register` does."""
    args: dict[str, Any] = {"worker": worker, "holder": holder, "idle": idle}
    args |= {"stopping": stopping, "running": running, "finished": finished}
    return Query("heartbeat", args, lambda row: list(row[1]))


def idle(*, worker: str, idle: bool) -> Query[str]:
    """Set whether a worker wants to be notified of work."""
    return Query("idle", {"worker": worker, "idle": idle}, lambda row: str(row[0]))


def deregister(*, worker: str, holder: str | None = None) -> Query[str]:
    """Delete a worker from the registry."""
    args = {"worker": worker, "holder": holder}
    return Query("deregister", args, lambda row: str(row[0]))


def channels() -> Query[tuple[str, str]]:
    """The channels for notifications: name in this schema, and what it is for."""
    return Query("channels", {}, lambda row: (str(row[0]), str(row[1])))


def workers() -> Query[rows.WorkerRow]:
    """Every worker that has not been pruned."""
    return Query("workers", {}, lambda row: rows.WorkerRow(*row))


class Owned(msgspec.Struct, frozen=True):
    """The holder of a worker, and the queues and tasks it serves."""

    holder: str | None
    queues: list[str]
    tasks: list[str]


def worker_owner(name: str) -> Query[Owned]:
    """The holder of the worker of this name; no row if it is not registered."""
    return Query("worker_owner", {"worker": name}, lambda row: Owned(*row))
