# SPDX-License-Identifier: MIT
"""A real service on a real port, and clients with tokens of any kind."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any

import httpx2

from byrote.assembly.identity import new_id, new_secret
from byrote.assembly.service import build_service
from byrote.service.app import build_app
from byrote.service.options import ServiceOptions
from byrote.service.server import ServeOptions, build_server
from byrote.service.service import Service
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store


def make_token(
    store: Store,
    role: str = "admin",
    *,
    queues: Sequence[str] = ("*",),
    tasks: Sequence[str] = ("*",),
    expires: timedelta | None = None,
    rate: int | None = None,
) -> tuple[str, str]:
    """A new token: its id and itself."""
    secret, token_id = new_secret(), new_id()
    store.all(
        queries.create_token(
            id=token_id,
            digest=sha256(secret.encode()).digest(),
            name=f"{role}-test",
            role=role,
            queues=queues,
            tasks=tasks,
            expires=expires,
            rate=rate,
        )
    )
    return token_id, secret


class Served:
    """A service that answers at `url`."""

    def __init__(self, service: Service, url: str, store: Store) -> None:
        self.service = service
        self.url = url
        self.store = store

    def client(self, role: str = "admin", **rights: Any) -> httpx2.Client:
        """A client with a new token."""
        return self.bearer(make_token(self.store, role, **rights)[1])

    def bearer(self, secret: str) -> httpx2.Client:
        """A client with this token."""
        headers = {"authorization": f"Bearer {secret}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30)


@contextlib.contextmanager
def serving(
    address: DatabaseAddress,
    store: Store,
    options: ServiceOptions | None = None,
    *,
    listen: ServeOptions | None = None,
) -> Iterator[Served]:
    """A service on its own port, on a thread."""
    service = build_service(address, options or ServiceOptions())
    listen = listen or ServeOptions(port=0, grace_s=5)
    server = build_server(build_app(service, version="0"), listen, service.stop)
    started = threading.Event()
    startup = server.startup

    async def tell(sockets: Any = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = tell  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(20)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Served(service, f"http://127.0.0.1:{port}", store)
    finally:
        loop = server._loop
        assert loop is not None
        loop.call_soon_threadsafe(service.stop)
        server.should_exit = True
        thread.join(15)
        assert not thread.is_alive()


def claim_one(client: httpx2.Client, task: str = "hello", **more: Any) -> dict[str, Any]:
    """One lease; there must be one."""
    asked = {"worker": "w", "tasks": [f"{task}@1"], **more}
    [lease] = client.post("/v1/leases", json=asked).raise_for_status().json()["leases"]
    return dict(lease)


def enqueue_one(client: httpx2.Client, task: str = "hello", **more: Any) -> str:
    """The id of a new run."""
    answer = client.post("/v1/runs", json={"task": task, **more}).raise_for_status()
    return str(answer.json()["id"])


def finish_one(client: httpx2.Client, lease: dict[str, Any], **how: Any) -> dict[str, Any]:
    """The service's reply to the end of an attempt."""
    said = {"run": lease["run"], "token": lease["token"], **how}
    return dict(client.post("/v1/leases/finish", json=said).raise_for_status().json())


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The problem of an answer, which must be this one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert told["code"] == code
    assert told["status"] == status
    assert told["request_id"] == answer.headers["x-request-id"]
    return told
