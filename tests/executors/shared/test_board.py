# SPDX-License-Identifier: MIT
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from byrote.executors.shared.board import SLOTS, Board

pytestmark = pytest.mark.pure

FUTURE = 2**40

CHILD = """
import sys
from byrote.executors.shared.board import Board
board = Board(int(sys.argv[1]))
for line in sys.stdin:
    verb, *numbers = line.split()
    print(getattr(board, verb)(*map(int, numbers)), flush=True)
"""


class Child:
    """A real process that maps the same memory and follows commands."""

    def __init__(self, fd: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(fd)],
            pass_fds=[fd],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def fd() -> Iterator[int]:
    fd = Board.make()
    yield fd
    os.close(fd)


@pytest.fixture
def board(fd: int) -> Iterator[Board]:
    board = Board(fd)
    yield board
    board.close()


@pytest.fixture
def child(fd: int) -> Iterator[Child]:
    child = Child(fd)
    yield child
    child.kill()


def test_the_supervisor_sees_what_another_process_began(board: Board, child: Child) -> None:
    board.assign(5)
    assert board.begun(5) is None
    assert child.do("begin", 5, 0, FUTURE) == "True"

    assert board.begun(5) is not None
    assert board.executing() == {5}


def test_what_has_begun_cannot_be_taken_back(board: Board, child: Child) -> None:
    board.assign(1)
    child.do("begin", 1, 0, FUTURE)

    assert not board.take_back(1)


def test_what_was_taken_back_is_declined_by_the_hand(board: Board, child: Child) -> None:
    board.assign(1)
    assert board.take_back(1)

    assert child.do("begin", 1, 0, FUTURE) == "False"
    assert board.executing() == set()


def test_a_run_whose_lease_has_run_out_is_not_begun(board: Board, child: Child) -> None:
    board.assign(1)

    assert child.do("begin", 1, 0, 1) == "False"
    assert board.begun(1) is None
    assert board.executing() == set()


def test_a_slot_can_be_used_again(board: Board, child: Child) -> None:
    board.assign(1)
    board.take_back(1)
    board.assign(1)

    assert child.do("begin", 1, 0, FUTURE) == "True"


def test_the_board_outlives_the_hand_and_shows_the_culprit(board: Board, child: Child) -> None:
    for slot in (1, 2, SLOTS - 1):
        board.assign(slot)
    child.do("begin", 1, 0, FUTURE)
    child.do("step", 2)
    child.do("begin", SLOTS - 1, 3, FUTURE)
    child.kill()

    assert board.executing() == {2, SLOTS - 1}


def test_no_slot_executes_after_leave(board: Board, child: Child) -> None:
    board.assign(1)
    child.do("begin", 1, 0, FUTURE)
    child.do("leave", 0)
    assert board.executing() == set()
    child.do("step", 1)
    child.do("step", -1)

    assert board.executing() == set()


def test_a_run_is_never_both_begun_and_taken_back(fd: int, board: Board) -> None:
    """Two sides race for every slot; at most one of them has it."""
    hand = Board(fd)
    gate = threading.Barrier(2)
    began: list[bool] = []
    rounds = range(300)

    def begin() -> None:
        for _ in rounds:
            gate.wait()
            began.append(hand.begin(0, 0, FUTURE))
            gate.wait()

    thread = threading.Thread(target=begin)
    thread.start()
    taken = []
    for _ in rounds:
        board.assign(0)
        gate.wait()
        taken.append(board.take_back(0))
        gate.wait()
    thread.join()
    hand.close()

    assert not any(a and b for a, b in zip(began, taken, strict=True))
