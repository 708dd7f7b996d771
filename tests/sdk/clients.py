# SPDX-License-Identifier: MIT
"""Both kinds of clients, for tests that run on each."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from byrote.sdk import AsyncClient, Client
from tests.sdk.harness import Db, ServiceProcess, new_service_token


class Driven:
    """An AsyncClient, driven from sync code: each verb runs to its end."""

    def __init__(self, url: str, token: str, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = AsyncClient(url, token, **options)

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            return self._wait(getattr(self._client, verb)(*args, **kwargs))

        return run

    def stream(self, **asked: Any) -> Iterator[Any]:
        events = self._client.stream(**asked)
        try:
            while True:
                yield self._wait(anext(events))
        finally:
            self._wait(events.aclose())

    def _wait(self, awaitable: Any) -> Any:
        async def ended() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(ended(), self._loop).result(60)

    def close(self) -> None:
        self._wait(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


KINDS: dict[str, Any] = {"sync": Client, "async": Driven}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


@pytest.fixture
def client(kind: Any, db: Db, module_service: ServiceProcess) -> Iterator[Any]:
    made = kind(module_service.url, new_service_token(db))
    yield made
    made.close()
