# SPDX-License-Identifier: MIT
"""Memory shared by the supervisor and one hand: which runs have begun, were revoked, execute now.

A hand that dies sends nothing, but the board still shows which run was executing: that one is
charged, the hand's other runs are not. A run that waits behind a slow one can be taken back even
while the hand's interpreter is stuck in C code and could not answer a message.

Taking back is Dekker's handshake: the supervisor writes `revoked`, then reads `begun`; the hand
writes `begun`, then reads `revoked`. Each passes through a lock in between (a full barrier), so at
least one of them sees the other. If both do, the supervisor does not take the run back, and the
hand declines it.
"""

import mmap
import threading
from time import monotonic_ns

from byrote.system.memory import make_file

SLOTS = 1024
_REVOKED = SLOTS
_CURRENT = 2 * SLOTS
THREADS_MAX = 64
_BLAMED = _CURRENT + 1 + THREADS_MAX
_IDENTS = _BLAMED + 1
SIZE = 8 * (_IDENTS + 1 + THREADS_MAX)


class Board:
    """One hand's board; both sides map the same memory."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, SIZE)
        self._cells = memoryview(self._memory).cast("Q")
        self._barrier = threading.Lock()
        self._pass, self._passed = self._barrier.acquire, self._barrier.release

    @staticmethod
    def make() -> int:
        """A descriptor of fresh shared memory, to be passed to the hand."""
        return make_file("board", SIZE)

    def assign(self, slot: int) -> None:
        """Supervisor: a new run is about to be sent into this slot."""
        self._cells[slot] = 0
        self._cells[_REVOKED + slot] = 0

    def begin(self, slot: int, seat: int, deadline: float) -> bool:
        """Hand: about to call the task, at the loop (0) or in thread n; False when taken back.

        A run whose lease must not be trusted any more is not begun either: the supervisor may have
        been frozen while this hand was not.
        """
        now = monotonic_ns()
        if now > deadline * 1e9:
            return False
        cells = self._cells
        cells[_CURRENT + seat] = slot + 1
        cells[slot] = now
        # Once for each run: explicit calls take half as long as `with`.
        self._pass()
        self._passed()
        if cells[_REVOKED + slot]:
            cells[_CURRENT + seat] = 0
            return False
        return True

    def step(self, slot: int) -> None:
        """Hand: the loop is about to run a step of this slot's coroutine; -1 for none."""
        self._cells[_CURRENT] = slot + 1

    def leave(self, seat: int) -> None:
        """Hand: no task's code runs at this seat any more."""
        self._cells[_CURRENT + seat] = 0

    def sit(self, seat: int) -> None:
        """Hand: this is the thread of a seat, from now on."""
        self._cells[_IDENTS + seat] = threading.get_ident()

    def blame(self, slot: int) -> None:
        """Hand: the code of this slot is about to end the process."""
        self._cells[_BLAMED] = slot + 1

    def blamed(self) -> int | None:
        """The slot whose code has ended the process, as announced by the hand, or None."""
        return self._cells[_BLAMED] - 1 if self._cells[_BLAMED] else None

    def executing_in(self, ident: int) -> int | None:
        """The slot whose code ran in the thread with this identity, or None."""
        for seat in range(1 + THREADS_MAX):
            if self._cells[_IDENTS + seat] == ident and self._cells[_CURRENT + seat]:
                return self._cells[_CURRENT + seat] - 1
        return None

    def begun(self, slot: int) -> float | None:
        """When the run in this slot began, by the machine's monotonic clock, or None."""
        at = self._cells[slot]
        return at / 1e9 if at else None

    def take_back(self, slot: int) -> bool:
        """Supervisor: take the run in this slot back; False if it had begun."""
        self._cells[_REVOKED + slot] = 1
        with self._barrier:
            pass
        return self._cells[slot] == 0

    def executing(self) -> set[int]:
        """Slots whose code was running when the board was last written."""
        return {cell - 1 for cell in self._cells[_CURRENT : _CURRENT + 1 + THREADS_MAX] if cell}

    def close(self) -> None:
        """Unmap the memory."""
        self._cells.release()
        self._memory.close()
