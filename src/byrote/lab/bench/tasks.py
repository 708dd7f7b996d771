# SPDX-License-Identifier: MIT
"""The tasks that are measured: they do as little as possible."""

import time
from typing import Any, NamedTuple

from byrote.assembly.app import App
from byrote.assembly.handles import TaskHandle


async def noop(n: int) -> int:
    """Do nothing, asynchronously."""
    return n


def noop_sync(n: int) -> int:
    """Do nothing."""
    return n


async def stamp(n: int) -> int:  # noqa: ARG001 -- it makes specs differ.
    """Return when it started, by the machine's monotonic clock."""
    return time.monotonic_ns()


class BenchTasks(NamedTuple):
    """The tasks, bound to one database."""

    app: App
    noop: TaskHandle[..., Any]
    noop_sync: TaskHandle[..., Any]
    stamp: TaskHandle[..., Any]


def bind(url: str | None = None) -> BenchTasks:
    """Return the tasks in their own app, for this database."""
    app = App(url)
    made = (app.task(name=f"bench.{task.__name__}")(task) for task in (noop, noop_sync, stamp))
    return BenchTasks(app, *made)


def of_kind(*functions: Any) -> App:
    """Return an app with these tasks only."""
    chosen = App()
    for function in functions:
        chosen.task(name=f"bench.{function.__name__}")(function)
    return chosen


app = bind().app
# A drain measures one kind: with tasks of both, a worker starts one hand more at the first run.
async_app, sync_app = of_kind(noop, stamp), of_kind(noop_sync)
