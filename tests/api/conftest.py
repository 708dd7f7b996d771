# SPDX-License-Identifier: MIT
import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from byrote import App
from byrote.assembly.settings import Settings
from byrote.assembly.worker import build_worker
from tests.tasks import api

KEPT = ("settings", "address", "store", "astore")


@pytest.fixture
def tasks(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """The app of tests/tasks/api.py on this test's database."""
    monkeypatch.setattr(api.app, "url", url)
    for name in KEPT:
        api.app.__dict__.pop(name, None)
    yield api.app
    api.app.close()
    for name in KEPT:
        api.app.__dict__.pop(name, None)


@pytest.fixture
def drain(url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Run a worker in this process until nothing is left to do."""
    monkeypatch.chdir(Path(__file__).parents[2])
    settings = Settings(
        database_url=url, executor="inline", queues={"default": 1, "mail": 1}, concurrency=8
    )

    def work() -> None:
        build_worker("tests.tasks.api:app", settings, emit=lambda _events: None, drain=True).run()

    return work


@pytest.fixture
def run_async(tasks: App) -> Callable[..., object]:
    """Run a coroutine on its own event loop, and close all connections."""

    def run(coroutine: Callable[[], object]) -> object:
        async def whole() -> object:
            try:
                return await coroutine()  # type: ignore[misc]
            finally:
                await tasks.astore.close()

        return asyncio.run(whole())

    return run
