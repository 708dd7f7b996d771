# SPDX-License-Identifier: MIT
"""Serves the app with uvicorn: TLS, connections that say nothing, and a stop that keeps nobody."""

import asyncio
import ipaddress
import resource
import ssl
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from byrote.core.errors import BadOption

HEAD_S = 10.0
"""How long the head of a request may take to arrive, the first one included."""
IDLE_S = 75
"""How long a connection may stand idle between two requests."""
HEAD_MAX = 32 * 1024
FILES_SPARE = 200
CONNECTIONS_MAX = 12_000


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen, and how."""

    host: str = "127.0.0.1"
    port: int = 8700
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    grace_s: int = 20
    """How long a stop waits for requests under way."""

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise BadOption("TLS needs both --tls-cert and --tls-key.")
        if self.certificate is None and not self.insecure and not is_loopback(self.host):
            raise BadOption(
                f"{self.host} can be reached from elsewhere, and tokens would travel in the clear. "
                "Give --tls-cert and --tls-key, or --insecure behind a proxy that speaks TLS."
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a service that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Protocol(H11Protocol):
    """HTTP/1.1 that gives up on a request whose head does not arrive."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection is there; its first request should not be long."""
        super().connection_made(transport)
        self._patience = self.loop.call_later(HEAD_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Some bytes came: the clock runs for as long as they are not a whole head."""
        super().data_received(data)
        headless = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0] != b""
        if headless and self._patience is None:
            self._patience = self.loop.call_later(HEAD_S, self._give_up)
        elif not headless and self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """A server that sends waiting requests home as soon as it is told to stop."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal asks to stop; a second one hurries."""
        super().handle_exit(sig, frame)
        # Or uvicorn would raise them again in the end, and a stop in good order exit as a crash.
        self._captured_signals.clear()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._on_stop)


def build_server(app: ASGIApp, options: ServeOptions, on_stop: Callable[[], None]) -> Server:
    """A server for the app; `run` serves until a signal ends it."""
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=options.grace_s,
        limit_concurrency=_room(),
        h11_max_incomplete_event_size=HEAD_MAX,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )
    return Server(config, on_stop)


def _room() -> int:
    """How many connections there may be: as many as the system allows files, within our limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + FILES_SPARE
    soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft - FILES_SPARE, 50)
