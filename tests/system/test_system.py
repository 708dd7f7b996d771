# SPDX-License-Identifier: MIT
"""`byrote.system` behaves alike with the functions of Linux and with the portable ones."""

import mmap
import os
import select
import signal
import subprocess
import sys

import pytest

from byrote.system.memory import make_file
from byrote.system.processes import EndWatch, has_word, rss_bytes
from byrote.system.wake import Wake, clear
from tests.support import until

DIES_WITH_PARENT = """
import os, signal, sys, threading
from byrote.system.processes import die_with_parent
assert die_with_parent(int(sys.argv[1]))
print("watching", flush=True)
threading.Event().wait()
"""
STARTS_ONE = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {DIES_WITH_PARENT!r}, str(os.getpid())])
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture(params=["linux", "portable"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "portable":
        for name in ("eventfd", "memfd_create", "pidfd_open"):
            monkeypatch.delattr(os, name, raising=False)


def _readable(fd: int, within: float = 0.0) -> bool:
    return bool(select.select([fd], [], [], within)[0])


def test_a_wake_is_readable_until_it_is_cleared(system: None) -> None:
    wake = Wake()
    found = [_readable(wake.fd)]
    wake.set()
    wake.set()
    found.append(_readable(wake.fd))
    clear(wake.fd)
    found.append(_readable(wake.fd))
    wake.close()

    assert found == [False, True, False]


def test_a_wake_that_is_never_read_does_not_block(system: None) -> None:
    wake = Wake()
    for _ in range(100_000):
        wake.set()

    assert _readable(wake.fd)
    wake.close()


def test_a_file_without_a_name_is_shared_memory(system: None) -> None:
    fd = make_file("test", 4096)
    one, other = mmap.mmap(fd, 4096), mmap.mmap(fd, 4096)
    one[:5] = b"hello"

    assert other[:5] == b"hello"
    assert not os.get_inheritable(fd)
    one.close()
    other.close()
    os.close(fd)


def test_the_end_of_a_process_makes_its_descriptor_readable(system: None) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        end = EndWatch(process)
        before = _readable(end.fd)
        process.kill()
        after = _readable(end.fd, 10.0)

        assert process.wait() == -signal.SIGKILL
    end.close()
    assert (before, after) == (False, True)


def test_a_process_dies_with_its_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        first, second = sorted((parent.stdout.readline().strip(), parent.stdout.readline().strip()))
        assert second == "watching"
        parent.kill()
        parent.wait()
        until(lambda: not has_word(int(first), DIES_WITH_PARENT.encode()), 10.0)


def test_the_command_line_and_the_memory_of_a_process_are_known() -> None:
    word = b"a word with spaces"
    with subprocess.Popen(
        [sys.executable, "-c", "input()", word.decode()], stdin=subprocess.PIPE
    ) as process:
        until(lambda: has_word(process.pid, word), 10.0)

        # Just after its start it has next to no memory.
        until(lambda: rss_bytes(process.pid) > 1_000_000, 10.0)
        assert not has_word(process.pid, b"another word")
        process.kill()
    assert rss_bytes(process.pid) == 0
    assert not has_word(process.pid, word)
