# SPDX-License-Identifier: MIT
"""`on_enqueue` changes or refuses specs."""

import asyncio
from typing import Any, cast

import pytest

from byrote import App, Spec
from byrote.core.errors import BadOption, UnknownQueue
from byrote.core.ports.hooks import OnEnqueue
from byrote.testing import captured_tasks


def labelled(spec: Spec) -> Spec:
    return spec.using(labels={**(spec.delivery.labels or {}), "tenant": "acme"})


def test_every_way_to_enqueue_calls_the_hooks_in_order(app: App) -> None:
    seen = list[str]()

    @app.task(name="t", labels={"own": "1"})
    def task(n: int) -> None: ...

    @app.on_enqueue
    def first(spec: Spec) -> None:
        seen.append(f"first {(spec.delivery.labels or {}).get('tenant')}")

    app.on_enqueue(labelled)

    @app.on_enqueue
    def last(spec: Spec) -> None:
        seen.append(f"last {(spec.delivery.labels or {}).get('tenant')}")

    async def later() -> list[str]:
        one = await task.aenqueue(2)
        return [one.id, *[run.id for run in await app.aenqueue_many([task.spec(3)])]]

    async def both() -> list[str]:
        async with app:
            return await later()

    ids = [task.enqueue(1).id, app.enqueue_many([task.spec(4)])[0].id, *asyncio.run(both())]

    assert [app.run(run).refresh().labels for run in ids] == [{"own": "1", "tenant": "acme"}] * 4
    assert seen == ["first None", "last acme"] * 4


def test_a_hook_that_raises_refuses_the_enqueue(app: App) -> None:
    @app.on_enqueue
    def refuse(spec: Spec) -> None:
        if '"args":[2]' in spec.text:
            raise PermissionError("not today")

    @app.task(name="t")
    def task(n: int) -> None: ...

    with pytest.raises(PermissionError, match="not today"):
        task.enqueue(2)
    with pytest.raises(PermissionError, match="not today"):
        app.enqueue_many([task.spec(1), task.spec(2)])

    assert app.runs() == []


def test_what_a_hook_returns_is_checked() -> None:
    app = App("postgresql://", queues=["mail"])

    @app.task(queue="mail", name="t")
    def task() -> None: ...

    hook: Any = lambda _spec: {"labels": {}}  # noqa: E731
    app.on_enqueue(hook)
    with pytest.raises(BadOption, match="of on_enqueue returned"):
        task.enqueue()
    app.hooks.enqueue[:] = [lambda spec: spec.using(queue="nowhere")]
    with pytest.raises(UnknownQueue):
        task.enqueue()
    app.hooks.enqueue[:] = [lambda spec: spec.using(lables={})]  # type: ignore[call-arg]
    with pytest.raises(BadOption, match="did you mean 'labels'"):
        task.enqueue()


def test_a_hook_must_be_a_function_that_enqueue_can_call() -> None:
    app = App("postgresql://")

    async def later(spec: Spec) -> Spec:
        return spec

    with pytest.raises(BadOption, match="is async"):
        app.on_enqueue(cast("OnEnqueue", later))
    with pytest.raises(BadOption, match="on_end takes a function, not 3"):
        app.on_end(cast("Any", 3))


def test_captured_calls_are_as_the_hooks_left_them() -> None:
    app = App("postgresql://")
    app.on_enqueue(labelled)

    @app.task(name="t")
    def task() -> None: ...

    with captured_tasks(app) as calls:
        task.enqueue()
        app.enqueue_many([task.spec()])

    assert [call.labels for call in calls] == [{"tenant": "acme"}] * 2
