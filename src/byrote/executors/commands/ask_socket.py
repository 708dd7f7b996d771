# SPDX-License-Identifier: MIT
"""A command's own way to its worker: for steps, sleeps, signals and artifacts of Python tasks.

Only `python -m byrote.executor` is given one: a socket, named by BYROTE_ASK_FD, over which it talks
like a hand (`frames.py`), but only to ask. The worker's end belongs to the thread that serves
commands; answers are put in by whoever has them. A program that says what nobody understands, or
does not take its answers, loses the line and nothing else: its next ask fails.
"""

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from byrote.core.ports.executor import Asks
from byrote.core.run import Leased
from byrote.executors.framing import Frames, frame
from byrote.executors.hands.messages import MalformedMessage, question_from
from byrote.executors.runtime.asks import ReplayMode, pass_on

VARIABLE = "BYROTE_ASK_FD"
REPLAY = "BYROTE_REPLAY"
"""How steps are answered where the attempt is a replay, see `desk.Replay`."""
PIECE = 1 << 16
UNSENT_MAX = 128 * 1024 * 1024
"""Bytes of answers that wait for a program to take them."""


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

    def fileno(self) -> int:
        """What to watch."""
        return self._socket.fileno()

    @property
    def backed_up(self) -> bool:
        """Whether an answer waits for room."""
        return bool(self._unsent)

    def variables(self, place: int) -> dict[str, str]:
        """What tells the program of it: under which number it has its end, and if it replays."""
        told = {VARIABLE: str(place)}
        return told if self._replay is None else told | {REPLAY: self._replay}

    def hear(self) -> bool:
        """Take what has come; False when the line is of no use any more."""
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

        def answer(ok: bool, said: Any) -> None:
            with self._lock:
                self._unsent += frame(["answer", 0, number, ok, said])
            if self.send():
                self._wake()

        pass_on(self._asks, self._run, (question.verb, question.payload), answer)

    def send(self) -> bool:
        """Send what the socket takes; whether something is left. From any thread."""
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
        """Close both ends, as far as they are ours."""
        with self._lock:
            self._open = False
            self._socket.close()

    def hand_over(self) -> None:
        """Close their end here; the command has it."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1
