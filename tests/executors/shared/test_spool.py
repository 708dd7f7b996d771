# SPDX-License-Identifier: MIT
import os
import random
from collections.abc import Iterator

import pytest

from byrote.executors.shared.spool import SIZE, Spool, printings, serial_of

pytestmark = pytest.mark.pure

ONE, TWO = serial_of("01932c4e-8d5b-7a90-b1c2-3d4e5f607182", 1), serial_of("0" * 36, 70000)


@pytest.fixture
def sides() -> Iterator[tuple[Spool, Spool]]:
    """The hand's and the supervisor's view of the same memory."""
    fd = Spool.make()
    hand, supervisor = Spool(fd), Spool(fd)
    os.close(fd)
    yield hand, supervisor
    hand.close()
    supervisor.close()


def test_what_one_side_writes_the_other_reads(sides: tuple[Spool, Spool]) -> None:
    hand, supervisor = sides
    assert printings(supervisor.copy()) == {}
    hand.write(ONE, 0, b"a", 1)
    hand.write(TWO, 1, b"other", 105)
    hand.write(ONE, 0, b"bcd" * 5, 16)

    assert printings(supervisor.copy()) == {
        ONE: (b"a" + b"bcd" * 5, b"", 16, 0),
        TWO: (b"", b"other", 0, 105),
    }


def test_the_end_is_kept_however_much_is_written(sides: tuple[Spool, Spool]) -> None:
    hand, supervisor = sides
    jitter, written = random.Random(1), {ONE: b"", TWO: b""}
    while len(written[ONE]) < 3 * SIZE:
        serial = jitter.choice((ONE, TWO))
        piece = jitter.randbytes(jitter.choice((0, 1, 7, 8, 4096, 100_000)))
        written[serial] += piece
        hand.write(serial, 0, piece, len(written[serial]))
    found = printings(supervisor.copy(), SIZE)

    assert {serial: found[serial].stdout_size for serial in found} == {
        serial: len(text) for serial, text in written.items()
    }
    for serial, text in written.items():
        assert text.endswith(found[serial].stdout)
        assert len(found[serial].stdout) > SIZE // 4


@pytest.mark.parametrize("seed", range(50))
def test_reading_arbitrary_memory_does_no_harm(sides: tuple[Spool, Spool], seed: int) -> None:
    hand, supervisor = sides
    jitter = random.Random(seed)
    for n in range(20):
        hand.write(ONE, 0, b"x" * n, n)
    for _ in range(jitter.randint(1, 30)):
        hand._memory[jitter.randrange(700)] = jitter.randrange(256)

    for found in printings(supervisor.copy()).values():
        assert len(found.stdout) + len(found.stderr) <= SIZE
