# SPDX-License-Identifier: MIT
"""Serves the app with uvicorn: TLS, timeouts of silent connections, and a prompt stop."""

import asyncio
import ipaddress
import resource
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from byrote.core.errors import BadOption
from byrote.service.http import gate
from byrote.wire.problems import MEDIA_TYPE, BadRequest, problem_of

HEAD_S = 10.0
"""How long the head of a request may take to arrive, the first one included."""
UNREAD_S = 30.0
"""How long a client may read nothing of its answer."""
IDLE_S = 75
"""How long a connection may be idle between two requests."""
FINAL = tuple(f"HTTP/1.1 {digit}".encode() for digit in (2, 3, 4, 5))
"""How the head of a final answer begins; not an interim one, such as 100."""
HEAD_MAX = 32 * 1024
FILES_SPARE = 200
CONNECTIONS_MAX = 12_000


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The address to listen on, and TLS."""

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
    """Whether only this machine can reach a service at this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ConnectionState(ServerState):
    """The state that uvicorn shares between its connections, and whether the server stops."""

    def __init__(self) -> None:
        super().__init__()
        self.stopping = False


class Joined:
    """A transport that sends the head of an answer together with the first part of its body.

    uvicorn writes head and body apart, which costs a system call and a packet for each. Only a head
    that states the length of a body is held; the head of a stream goes out at once.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes now, or with the next ones if they are the head of an answer."""
        if self._held:
            data, self._held = self._held + data, b""
        elif data.startswith(FINAL) and b"\r\ncontent-length: " in data:
            self._held = data
            return
        self._transport.write(data)

    def write_eof(self) -> None:
        """Send the held bytes, then end of file."""
        self.write(b"")
        self._transport.write_eof()

    def close(self) -> None:
        """Send the held bytes, and close."""
        if self._held:  # After end of file nothing may be written, not even no bytes.
            self.write(b"")
        self._transport.close()


class Protocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose request head does not arrive in time."""

    _patience: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _closing: asyncio.TimerHandle | None = None
    _dropped = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection was opened; its first request must arrive soon."""
        super().connection_made(transport)
        self.transport = Joined(transport)  # type: ignore[assignment]
        if isinstance(self.server_state, ConnectionState) and self.server_state.stopping:
            self.shutdown()
            return
        self._patience = self.loop.call_later(HEAD_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Bytes arrived: the timeout runs until they are a whole head."""
        if self._closing is not None:
            self._drop(data)
            return
        super().data_received(data)
        headless = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0] != b""
        if headless and self._patience is None:
            self._patience = self.loop.call_later(HEAD_S, self._give_up)
        elif not headless and self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not an HTTP request in the form of every other refusal.

        A client may send all of its request before it reads. Closing a connection with unread
        input resets it, and the client would lose the answer; so the rest is read and dropped,
        within limits, until the client closes.
        """
        self._end_cycle()
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()  # Another answer is half sent.
            return
        problem = problem_of(BadRequest(msg), request_id="")
        body = msgspec.json.encode(problem)
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events = (
            h11.Response(status_code=problem.status, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._closing = self.loop.call_later(gate.DROPPED_S, self.transport.close)

    def _end_cycle(self) -> None:
        """Let the handler of a request whose body cannot be parsed end as after a disconnect."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.flow.resume_reading()

    def _drop(self, data: bytes) -> None:
        self._dropped += len(data)
        if self._dropped > gate.DROPPED_MAX:
            self.transport.close()

    def pause_writing(self) -> None:
        """The client does not read its answer."""
        super().pause_writing()
        self._watch_reader(None)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch_reader(self, before: int | None) -> None:
        """End the connection of a client that has read nothing for a while."""
        left = self.transport.get_write_buffer_size()
        if left == before:
            self.transport.abort()
        else:
            self._unread = self.loop.call_later(UNREAD_S, self._watch_reader, left)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed: stop the timers."""
        for timer in (self._patience, self._unread, self._closing):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()


class HttpServer(uvicorn.Server):
    """A server that ends waiting requests as soon as it receives a signal to stop."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self.server_state: ConnectionState = ConnectionState()
        self._on_stop = on_stop
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: Any = None) -> None:
        """Start to listen."""
        self._loop = asyncio.get_running_loop()
        if self.config.is_ssl:
            # uvicorn has no option for it; the default keeps a silent client for a minute.
            listen = partial(self._loop.create_server, ssl_handshake_timeout=HEAD_S)
            self._loop.create_server = listen  # type: ignore[method-assign]
        await super().startup(sockets)

    async def shutdown(self, sockets: Any = None) -> None:
        """Close the connections, and wait for the requests under way.

        uvicorn asks the connections that it knows to close, once. It does not know one that is
        accepted but not set up yet (with TLS: until the end of the handshake); such a connection
        would be served and kept alive until the grace period ends, so it is closed on arrival.
        """
        self.server_state.stopping = True
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal requests a stop; a second one shortens it."""
        super().handle_exit(sig, frame)
        # Or uvicorn would raise them again in the end, and a stop in good order exit as a crash.
        self._captured_signals.clear()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._on_stop)


def build_server(app: ASGIApp, options: ServeOptions, on_stop: Callable[[], None]) -> HttpServer:
    """Return a server for the app; `run` serves until a signal ends it."""
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
    return HttpServer(config, on_stop)


def _room() -> int:
    """The maximum number of connections: as many files as the system allows, within our limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + FILES_SPARE
    soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft - FILES_SPARE, 50)
