# SPDX-License-Identifier: MIT
"""The socket between a command and its worker: steps, sleeps, signals, artifacts of Python tasks.

Only `python -m byrote.executor` has one, named by BYROTE_ASK_FD. It uses the framing of hands
(`framing.py`), but may only send asks. The thread that serves commands owns the worker's end; any
thread may add an answer. If a program sends a malformed message or does not read its answers, only
this socket is closed or its answers are dropped: the next ask of the program fails.
"""

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from byrote.core.ports.executor import Asks
from byrote.core.run import Leased
from byrote.executors.framing import Frames, frame
from byrote.executors.runtime.asks import ASKS_MAX, TOO_MANY, ReplayMode, pass_on
from byrote.executors.shared.messages import MalformedMessage, question_from

VARIABLE = "BYROTE_ASK_FD"
REPLAY = "BYROTE_REPLAY"
"""How steps are answered where the attempt is a replay, see `asks.ReplayMode`."""
PIECE = 1 << 16
UNSENT_MAX = 128 * 1024 * 1024
"""Bytes of answers that may wait for the program to read them."""


class AskSocket:
    """The worker's end."""

    def __init__(
        self,
        run: Leased,
        asks: Asks | None,
        wake: Callable[[], None],
        replay: ReplayMode | None = None,
    ) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.theirs = theirs.detach()
        self._socket = ours
        self._run = run
        self._asks = asks
        self._wake = wake
        self._replay = replay
        self._frames: Frames[object] = Frames()
        self._lock = threading.Lock()
        self._unsent = bytearray()
        self._open = True
        self._pending = 0
        """Asks that have no answer yet."""

    def fileno(self) -> int:
        """The descriptor of the worker's end, for the selector."""
        return self._socket.fileno()

    @property
    def backed_up(self) -> bool:
        """Whether an answer waits for room."""
        return bool(self._unsent)

    def variables(self, fd: int) -> dict[str, str]:
        """Environment variables for the program: the descriptor of its end, and the replay mode."""
        named = {VARIABLE: str(fd)}
        return named if self._replay is None else named | {REPLAY: self._replay}

    def receive(self) -> bool:
        """Read and handle messages; False when the socket is closed or a message was malformed."""
        try:
            piece = self._socket.recv(PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        try:
            for message in self._frames.feed(piece):
                self._heed(message)
        except (MalformedMessage, ValueError):
            return False
        return bool(piece)

    def _heed(self, message: object) -> None:
        match message:
            case ["ask", asked]:
                question = question_from(asked)
            case _:
                raise MalformedMessage("A command may only ask.")
        number = question.number

        def answer(ok: bool, payload: Any) -> None:
            with self._lock:
                self._pending -= 1
                self._unsent += frame(["answer", 0, number, ok, payload])
            if self.send():
                self._wake()

        with self._lock:
            self._pending += 1
        if self._pending > ASKS_MAX:
            answer(False, TOO_MANY)
            return
        pass_on(self._asks, self._run, (question.verb, question.payload), answer)

    def send(self) -> bool:
        """Send as much as the socket accepts; returns whether bytes are left. From any thread."""
        with self._lock:
            try:
                while self._unsent and self._open:
                    del self._unsent[: self._socket.send(self._unsent)]
            except BlockingIOError:
                if len(self._unsent) <= UNSENT_MAX:
                    return True
                self._unsent.clear()
            except OSError:
                self._unsent.clear()
            return False

    def close(self) -> None:
        """Close the worker's end."""
        with self._lock:
            self._open = False
            self._socket.close()

    def hand_over(self) -> None:
        """Close the worker's copy of the command's end, which the command has inherited."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1
