# SPDX-License-Identifier: MIT
"""A server that stops closes every connection, also one that is set up during the stop."""

import asyncio
import socket

from starlette.applications import Starlette

from byrote.service.server import HEAD_S, HttpServer, ServeOptions, build_server

GRACE_S = 60
SOON_S = HEAD_S / 2
"""Less than the time after which the server closes any connection without a request."""


async def started() -> HttpServer:
    server = build_server(Starlette(), ServeOptions(port=0, grace_s=GRACE_S), lambda: None)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.lifespan.startup()
    await server.startup()
    return server


async def connected_during(server: HttpServer) -> bytes:
    """Stop the server, connect before it has stopped, and read until the server closes."""
    stopping = asyncio.ensure_future(server.shutdown())
    await asyncio.sleep(0)  # uvicorn has asked the connections that it knows to close.
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().connect_accepted_socket(
        lambda: server.config.http_protocol_class(  # type: ignore[call-arg, union-attr]
            config=server.config, server_state=server.server_state, app_state={}
        ),
        theirs,
    )
    reader, writer = await asyncio.open_connection(sock=ours)
    async with asyncio.timeout(SOON_S):
        received = await reader.read()
        writer.close()
        await stopping
    return received


def test_a_connection_set_up_during_a_stop_is_closed() -> None:
    async def run() -> bytes:
        return await connected_during(await started())

    assert asyncio.run(run()) == b""
