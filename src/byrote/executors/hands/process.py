# SPDX-License-Identifier: MIT
"""The supervisor's side of one hand: process, socket, board, and the runs it was given."""

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Sequence
from typing import Any

from byrote.core.outcome import Outcome
from byrote.core.replay.provenance import Provenance
from byrote.core.run import Leased
from byrote.executors.framing import Frames, frame
from byrote.executors.hands.crash_report import culprit_of, make_report
from byrote.executors.hands.messages import FromHand, Malformed, ToHand, decode_from_hand
from byrote.executors.hands.orphans import MARK
from byrote.executors.hands.send_buffer import SendBuffer
from byrote.executors.runtime.job import Job, TaskMode, job_of, none_of_each
from byrote.executors.shared.board import SLOTS, Board
from byrote.executors.shared.results import Results
from byrote.executors.shared.spool import Spool
from byrote.system.processes import HAS_PROC, EndWatch, rss_bytes

PIECE = 1 << 18
PS_EVERY = 20
"""Without a /proc, only one in this many checks of a hand's memory starts a `ps`."""
_numbers = itertools.count()
WORKER = "BYROTE_WORKER"
"""Environment variable with the name of the hand's worker."""


class HandProcess:
    """One hand, as its supervisor knows it. Guarded by the pool's lock."""

    async_hands: int = 0
    """The number of hands with async tasks that was last sent to it."""

    def __init__(self, python: str, settings: dict[str, Any], environment: dict[str, str]) -> None:
        ours, theirs = socket.socketpair()
        board_fd, spool_fd = Board.make(), Spool.make()
        result_fds, self.report_fd = Results.make(), make_report()
        self.mark = f"{os.getpid()}-{board_fd}-{theirs.fileno()}-{next(_numbers)}"
        passed = {
            "supervisor": os.getpid(),
            "link": theirs.fileno(),
            "board": board_fd,
            "spool": spool_fd,
            "results": result_fds,
            "report": self.report_fd,
        }
        self.process = subprocess.Popen(  # noqa: S603 -- our own module, our own arguments.
            [python, "-m", "byrote.assembly.hand_main", json.dumps(settings | passed)],
            pass_fds=(theirs.fileno(), board_fd, spool_fd, *result_fds, self.report_fd),
            stdin=subprocess.DEVNULL,
            env=environment | {MARK: self.mark},
            # A new session: killing the process group also kills the processes that tasks started.
            start_new_session=True,
        )
        theirs.close()
        self.board = Board(board_fd)
        self.spool = Spool(spool_fd)
        self.results = Results(*result_fds)
        for fd in (board_fd, spool_fd, *result_fds):
            os.close(fd)
        self.link = ours
        self.link.setblocking(False)
        self.end = EndWatch(self.process)
        self.jobs: dict[int, Leased] = {}
        self.modes = [TaskMode.SYNC] * SLOTS
        """The mode of each slot's task."""
        self.sent_at = [0.0] * SLOTS
        """When the run in each slot was sent."""
        self.revoked: set[int] = set()
        self.free: deque[int] = deque(range(SLOTS))
        self.running = none_of_each()
        self.ready = False
        self.retiring = False
        self.dismissed = False
        self.reserved = False
        """Whether the hand is kept empty for a run that must be alone, or executes it."""
        self.deaf = False
        """Whether its end of the socket is closed: the hand has ended, or a task closed it."""
        self.garbled: str | None = None
        """The error of its first malformed message; later messages are ignored."""
        self.finished = 0
        self.stopping: dict[int, float] = {}
        self.fates: dict[int, Outcome | None] = {}
        """The outcome to report for each slot that is being stopped; None to report nothing."""
        self.killed = False
        self.provenance: Provenance | None = None
        self.stalled = False
        """Whether it was killed because it had stopped reading."""
        self.asks = 0
        """Asks of its attempts that have no answer yet."""
        self._looks = self._rss = 0
        self._frames = Frames(decode_from_hand)
        self.outgoing = SendBuffer(ours)

    @property
    def pid(self) -> int:
        """The child's process id, which is also its group's."""
        return self.process.pid

    @property
    def able(self) -> bool:
        """Whether it takes more work."""
        return self.takes_runs and not self.reserved

    @property
    def takes_runs(self) -> bool:
        """Whether a run could be sent to it if it were not reserved for another."""
        return self.ready and not (self.retiring or self.killed or self.outgoing.full)

    def send(self, message: ToHand) -> None:
        """Send a message as far as the socket accepts it; the rest follows when it has room."""
        self.outgoing.send(frame(message))

    def receive(self) -> list[FromHand | Malformed]:
        """Every complete message; none after the first one that is malformed."""
        messages: list[FromHand | Malformed] = []
        while self.garbled is None:
            try:
                piece = self.link.recv(PIECE)
            except BlockingIOError:
                return messages
            except OSError:
                piece = b""
            if not piece:
                self.deaf = True
                return messages
            try:
                messages += self._frames.feed(piece)
            except ValueError as error:
                self.garbled = str(error)
            if len(piece) < PIECE:
                return messages
        return messages

    def take(self, runs: Sequence[tuple[Leased, TaskMode]], now: float) -> list[Job]:
        """Assign slots of this hand to runs; returns the jobs to be sent."""
        free, jobs, modes, sent_at = self.free, self.jobs, self.modes, self.sent_at
        sent = []
        for run, mode in runs:
            slot = free.popleft()
            self.board.assign(slot)
            self.results.assign(slot)
            jobs[slot] = run
            modes[slot] = mode
            sent_at[slot] = now
            self.running[mode] += 1
            sent.append(job_of(slot, run))
        return sent

    def drop(self, slot: int) -> Leased:
        """Remove the run from this hand; its slot stays in use until the hand releases it."""
        self.stopping.pop(slot, None)
        self.running[self.modes[slot]] -= 1
        return self.jobs.pop(slot)

    def unbegun(self, sent_before: float) -> list[int]:
        """Slots whose runs were sent before then and have not begun."""
        return [
            slot
            for slot in self.jobs
            if self.sent_at[slot] < sent_before and self.board.begun(slot) is None
        ]

    def stops_reading(self, now: float) -> bool:
        """Whether it has stopped reading; True once, the caller ends the hand."""
        found = not (self.stalled or self.killed) and self.outgoing.stalled(now)
        self.stalled = self.stalled or found
        return found

    def kill(self) -> None:
        """End the hand and everything in its process group."""
        self.killed = True
        self.crash()

    def crash(self) -> None:
        """Kill the hand, and treat its end as a crash."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptors and shared memory of a hand that has ended."""
        # Grandchildren that outlived the hand share its group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.link.close()
        self.end.close()
        self.board.close()
        self.spool.close()
        self.results.close()
        os.close(self.report_fd)

    @property
    def culprit(self) -> int | None:
        """The slot whose code ended the hand, if that is known."""
        return culprit_of(self.board, self.report_fd)

    @property
    def rss(self) -> int:
        """Resident memory in bytes; 0 when the process has gone."""
        self._looks += 1
        if HAS_PROC or self._looks % PS_EVERY == 1:
            self._rss = rss_bytes(self.pid)
        return self._rss
