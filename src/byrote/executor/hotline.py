# SPDX-License-Identifier: MIT
"""A command's end of its way to the worker: a desk whose asks go over a socket."""

import asyncio
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any

import msgspec

from byrote.assembly.once import once
from byrote.core.withholding import withhold_everywhere
from byrote.executors.desk import Desk, Replay
from byrote.executors.frames import Frames, frame
from byrote.executors.hotline import PIECE, REPLAY, VARIABLE


def open_desk() -> Desk | None:
    """A desk, if the worker offers a way to ask; a thread of its own hears the answers.

    Called on the loop of an async task, it knows that loop as the one nobody may block.
    """
    offered = os.environ.pop(VARIABLE, "")
    if not offered.isdigit():
        return None
    replay = msgspec.convert(os.environ.pop(REPLAY, None), Replay | None)
    if replay is not None:
        withhold_everywhere()
    link = socket.socket(fileno=int(offered))
    link.set_inheritable(False)
    turn = threading.Lock()

    def send(slot: int, number: int, verb: str, payload: Mapping[str, Any]) -> None:
        with turn:
            link.sendall(frame(["ask", [slot, number, verb, payload]]))

    async def make() -> Desk:
        return Desk(send, once, replay)

    try:
        asyncio.get_running_loop()
        desk = Desk(send, once, replay)
    except RuntimeError:
        desk = asyncio.run(make())
    threading.Thread(target=_hear, args=(link, desk), name="byrote-answers", daemon=True).start()
    return desk


def _hear(link: socket.socket, desk: Desk) -> None:
    frames = Frames()
    try:
        while piece := link.recv(PIECE):
            for message in frames.feed(piece):
                match message:
                    case ["answer", _slot, int(number), bool(ok), payload]:
                        desk.answer(number, ok, payload)
    except OSError:
        pass
    # Nobody answers any more: whoever waits is told, as when a lease is lost.
    desk.close()
