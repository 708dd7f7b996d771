# SPDX-License-Identifier: MIT
import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from byrote import App, Context, WaitTimeout
from byrote.core.artifact import ArtifactRefused
from byrote.core.errors import BadOption
from byrote.testing import context

pytestmark = pytest.mark.pure

app = App()


@app.task
def charge(ctx: Context, amount: int) -> str:
    receipt = ctx.step("reserve", lambda: f"receipt {amount}")
    ctx.sleep("3d")
    paid = ctx.wait_for("paid", timeout="1h", default={"cents": 0})
    ctx.progress(1, 2, "half")
    ctx.artifact("receipt.txt", receipt.encode())
    return f"{receipt}: {paid['cents']}"


def test_a_task_is_called_directly_with_all_it_uses() -> None:
    ctx = context(signals={"paid": {"cents": 300}})

    assert charge.function(ctx, 3) == "receipt 3: 300"
    assert ctx.steps == ["reserve"]
    assert ctx.sleeps == [timedelta(days=3)]
    assert ctx.artifacts["receipt.txt"].read() == b"receipt 3"
    assert [report.message for report in ctx.progress_reports] == ["half"]


def test_an_async_task_is_called_directly() -> None:
    @app.task
    async def order(ctx: Context, number: int) -> list[Any]:
        async def fetch() -> int:
            return number

        found = await ctx.astep("fetch", fetch)
        await ctx.asleep("1h")
        await ctx.aartifact("order", b"x")
        return [found, await ctx.await_for("paid")]

    ctx = context(signals={"paid": None})

    assert asyncio.run(order.function(ctx, 4)) == [4, None]
    assert ctx.steps == ["fetch"]


def test_a_sync_task_may_be_called_in_an_async_test() -> None:
    async def test() -> str:
        return str(charge.function(context(), 3))

    assert asyncio.run(test()) == "receipt 3: 0"


def test_a_signal_that_the_test_does_not_send_times_out() -> None:
    with pytest.raises(WaitTimeout):
        context().wait_for("paid", timeout="1h")


def test_a_wait_without_a_timeout_explains_how_to_send_the_signal() -> None:
    with pytest.raises(BadOption, match=r"context\(signals=\{'paid': payload\}\)"):
        context().wait_for("paid")


def test_the_error_of_a_step_reaches_the_task() -> None:
    ctx = context()
    with pytest.raises(ZeroDivisionError):
        ctx.step("divide", lambda: 1 // 0)

    assert ctx.steps == []


def test_random_numbers_are_the_same_for_the_same_run_id() -> None:
    assert context().random.random() == context().random.random()
    assert context().uuid() == context().uuid()
    assert context(run_id="other").seed != context().seed


def test_the_facts_of_the_attempt_can_be_chosen() -> None:
    moment = datetime(2027, 1, 2, 3, 4, tzinfo=UTC)
    ctx = context(attempt=3, labels={"tenant": "a"}, queue="mail", now=moment, timeout="5m")

    assert (ctx.attempt, ctx.labels, ctx.queue, ctx.now()) == (3, {"tenant": "a"}, "mail", moment)
    assert 290 < (ctx.seconds_left or 0) <= 300
    assert ctx.step("again", lambda: 1) == 1


def test_an_artifact_is_refused_as_by_a_worker(tmp_path: Path) -> None:
    ctx = context()
    (tmp_path / "file").write_bytes(b"one")
    ctx.artifact("name", tmp_path / "file")
    with pytest.raises(ArtifactRefused, match="another content"):
        ctx.artifact("name", b"two")
    with pytest.raises(ArtifactRefused, match="not str"):
        ctx.artifact("text", "text")  # type: ignore[arg-type]
    with pytest.raises(ArtifactRefused, match="not an artifact name"):
        ctx.artifact("../up", b"")

    assert ctx.artifacts["name"].read() == b"one"
