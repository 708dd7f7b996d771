# SPDX-License-Identifier: MIT
"""Public signatures of the SDK, pinned: `mypy --strict` fails here when one changes."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Any, assert_type

from byrote.sdk import (
    Accepted,
    AsyncClient,
    Client,
    Context,
    Handlers,
    NewRun,
    Retry,
    Run,
    Worker,
    new_run,
)
from byrote.wire.messages import ArtifactView, EventView, QueueView, RunPage
from byrote.wire.progress import RunProgress

client = Client("http://host:8700", "byr_x", timeout=5)
assert_type(client.enqueue("t", {"a": 1}, queue="q", retry=Retry(), key="k"), Accepted)
assert_type(client.enqueue_many([new_run("t", args=[1], priority=3)]), list[Accepted])
assert_type(new_run("t", 1), NewRun)
assert_type(client.get("id"), Run)
assert_type(client.wait("id", 5), Run)
assert_type(client.result("id", "5s"), Any)
assert_type(client.cancel("id"), bool)
assert_type(client.dead(queue="q"), RunPage)
assert_type(client.queues(), list[QueueView])
assert_type(client.events("id"), list[EventView])
assert_type(client.progress("id"), RunProgress)
assert_type(client.artifacts("id"), list[ArtifactView])
assert_type(client.fetch("id", "hash"), bytes)
assert_type(client.fetch("id", client.artifacts("id")[0], to="a.csv"), Path)
client.enqueue("t", 1, priority="high")  # type: ignore[arg-type]  # A priority is a number.
client.enqueue("t", 1, colour="red")  # type: ignore[call-arg]  # Not an option.


async def later(aclient: AsyncClient) -> None:
    assert_type(aclient.get("id"), Awaitable[Run])
    assert_type(await aclient.enqueue("t"), Accepted)
    assert_type(await aclient.artifacts("id"), list[ArtifactView])
    assert_type(await aclient.fetch("id", "hash"), bytes)
    assert_type(await aclient.fetch("id", "hash", to=Path("a.csv")), Path)
    async for event in aclient.stream(queue="q"):
        assert_type(event, EventView)


handlers = Handlers()


@handlers.handle("t", version=2)
def handle(ctx: Context, payload: Any) -> int:
    return ctx.attempt


@handlers.task()
def plain(a: int, b: str = "") -> str:
    return b * a


assert_type(plain(1), str)
assert_type(Worker("shop:handlers", queues="a=2", hands=1, lease="30s").ready, bool)
