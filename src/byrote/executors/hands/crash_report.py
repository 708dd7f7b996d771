# SPDX-License-Identifier: MIT
"""Finds the attempt whose code ended a hand, where several attempts ran at once.

A task that ends the process itself (`os._exit`, a deadly signal to its own process) is named on the
board before that happens. For a fatal signal (a segmentation fault, `abort`) the interpreter writes
which thread received it into a file that the supervisor shares, and the board shows which attempt
that thread was executing. If the process is ended from outside, no attempt is named.
"""

import faulthandler
import os
import re
import signal
from collections.abc import Callable
from typing import Any, NoReturn

from byrote.executors.runtime.output import current_scope
from byrote.executors.shared.board import Board
from byrote.system.memory import make_file

REPORT_MAX = 64 * 1024
_CURRENT = re.compile(rb"Current thread 0x([0-9a-f]+)")
_DEADLY = frozenset(signal.Signals) - {
    signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGINT, signal.SIGTERM,
}  # fmt: skip
"""Signals that may end a hand, which ignores SIGINT and SIGTERM."""


def make_report() -> int:
    """A descriptor of a file in memory, to be passed to the hand."""
    return make_file("crash")


def name_culprits(board: Board, report_fd: int) -> None:
    """Hand: from now on, an attempt that takes this process down is named."""
    faulthandler.enable(report_fd)
    # A process that a task forks shares this memory, but its end does not end the hand.
    os.register_at_fork(after_in_child=faulthandler.disable)
    hand = os.getpid()
    os._exit = _blaming(os._exit, board, hand)
    os.kill = _blaming_signals(os.kill, board, hand)
    os.killpg = _blaming_signals(os.killpg, board, hand)


def _blame(board: Board, hand: int) -> None:
    scope = current_scope()
    if scope is None or scope.job is None or scope.closed:
        return
    if os.getpid() == hand:
        board.blame(scope.job.slot)


def _blaming(leave: Callable[[int], NoReturn], board: Board, hand: int) -> Any:
    def _exit(status: int) -> NoReturn:
        """Exit the process at once; see `os._exit`."""
        _blame(board, hand)
        leave(status)

    return _exit


def _blaming_signals(send: Callable[[int, int], None], board: Board, hand: int) -> Any:
    def kill(pid: int, number: int, /) -> None:
        """Send a signal; see `os.kill` and `os.killpg`."""
        if number in _DEADLY and pid in {0, hand, -hand}:
            _blame(board, hand)
        send(pid, number)

    return kill


def culprit_of(board: Board, report_fd: int) -> int | None:
    """Supervisor: the slot whose code ended the hand, or None; what was reported is printed."""
    report = os.pread(report_fd, REPORT_MAX, 0)
    if report:
        os.write(2, report)
    named = board.blamed()
    found = _CURRENT.search(report)
    if named is not None or found is None:
        return named
    return board.executing_in(int(found[1], 16))
