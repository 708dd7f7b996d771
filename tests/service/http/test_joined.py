# SPDX-License-Identifier: MIT
"""The head of an answer is sent together with its body, and never kept back for long."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from byrote.service.server import Joined

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Wire(asyncio.Transport):
    """Remembers what is sent, and that nothing follows."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data:
            self.sent.append(bytes(data))

    def write_eof(self) -> None:
        self.sent.append(b"<eof>")

    def close(self) -> None:
        self.sent.append(b"<closed>")


def sent_by(act: Callable[[Joined], Awaitable[None]]) -> list[bytes]:
    async def run() -> list[bytes]:
        wire = Wire()
        await act(Joined(wire))
        return wire.sent

    return asyncio.run(run())


def test_a_head_is_sent_with_its_body() -> None:
    async def answer(joined: Joined) -> None:
        for part in (HEAD, b"body", b""):
            joined.write(part)

    assert sent_by(answer) == [HEAD + b"body"]


def test_two_answers_are_sent_apart() -> None:
    async def answer(joined: Joined) -> None:
        for part in (HEAD, b"one", HEAD, b"two"):
            joined.write(part)

    assert sent_by(answer) == [HEAD + b"one", HEAD + b"two"]


def test_the_head_of_a_stream_is_sent_at_once() -> None:
    """A stream may have nothing to report for a long time; its client learns that it is open."""

    async def answer(joined: Joined) -> None:
        joined.write(STREAM)

    assert sent_by(answer) == [STREAM]


def test_a_head_without_a_body_is_sent_at_its_end() -> None:
    async def answer(joined: Joined) -> None:
        for part in (HEAD, b""):
            joined.write(part)

    assert sent_by(answer) == [HEAD]


def test_an_invitation_to_send_the_body_is_not_kept_back() -> None:
    async def answer(joined: Joined) -> None:
        joined.write(CONTINUE)

    assert sent_by(answer) == [CONTINUE]


@pytest.mark.parametrize("end", ["write_eof", "close"])
def test_nothing_is_lost_when_the_connection_ends(end: str) -> None:
    async def answer(joined: Joined) -> None:
        joined.write(HEAD)
        getattr(joined, end)()

    assert sent_by(answer)[0] == HEAD
    assert len(sent_by(answer)) == 2
