# SPDX-License-Identifier: MIT
"""Parents, children and ends of processes, by Linux's own functions or by portable ones.

- The end of a child is a readable descriptor: a pidfd, elsewhere a pipe that a thread closes.
- A child dies with its parent, even by SIGKILL: `prctl`, elsewhere a thread polls the parent's id,
  and a shell does the same for a child whose threads cannot run because C code holds the GIL.
- A supervisor adopts the orphans of its descendants: `prctl`, elsewhere only process groups are
  killed, and a process that began a new session outlives its task.
- Command line and memory of another process: /proc, elsewhere `ps`; its environment is not known.
"""

import contextlib
import ctypes
import mmap
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

PROC = Path("/proc")
HAS_PROC = (PROC / "self").exists()
PARENT_CHECK_S = 0.25
"""How often a process asks whether its parent is alive, where the kernel does not report it."""
_WATCH = """
while p=$(ps -o ppid= -p "$1"); [ -n "$p" ]; do
  [ $p -eq "$0" ] || { kill -9 "$1"; exit; }
  sleep 1
done
"""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAGE = mmap.PAGESIZE


class EndWatch:
    """A descriptor that becomes readable when a child process has ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._thread: threading.Thread | None = None
        if hasattr(os, "pidfd_open"):
            self.fd = os.pidfd_open(process.pid)
            return
        self.fd, written = os.pipe()
        self._thread = threading.Thread(
            target=_close_after, args=(process, written), name="byrote-end-watch", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Close the descriptor; the process must have ended."""
        if self._thread is not None:
            self._thread.join()
        os.close(self.fd)


def _close_after(process: subprocess.Popen[bytes], fd: int) -> None:
    """Wait for the end of a process, then close the descriptor: its reader gets an end of file."""
    process.wait()
    os.close(fd)


def has_pidfds() -> bool:
    """Whether processes have descriptors here, and the system lets us open them."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def signal_and_wait(
    pid: int, number: signal.Signals, patience: float, *, if_it: Callable[[], bool]
) -> bool:
    """Send a signal by a pidfd, and wait for the end of the process; needs `has_pidfds`.

    `if_it` decides, while the pid cannot be reused, whether it is the process that is meant.
    Returns whether the process has ended, True if it was not that one.
    """
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if not if_it():
            return True
        signal.pidfd_send_signal(fd, number)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(patience * 1000))
    except ProcessLookupError:
        return True
    finally:
        os.close(fd)


def die_with_parent(parent: int, number: signal.Signals | None = None) -> bool:
    """Send this process a signal when its parent ends, SIGKILL if none is named.

    Returns whether the parent lives now.
    """
    number = signal.SIGKILL if number is None else number
    if not _prctl(_PR_SET_PDEATHSIG, number):
        threading.Thread(
            target=_await_orphanhood, args=(parent, number), name="byrote-parent", daemon=True
        ).start()
        if number == signal.SIGKILL:
            _watch_from_outside(parent)
    return os.getppid() == parent


def _await_orphanhood(parent: int, number: signal.Signals) -> None:
    ended = threading.Event()
    while os.getppid() == parent:
        ended.wait(PARENT_CHECK_S)
    os.kill(os.getpid(), number)


def _watch_from_outside(parent: int) -> None:
    """Start a shell that kills this process once it has another parent, and ends with it."""
    # In the background of a shell that ends at once: no child of ours, which a task could await.
    # In our process group: whatever kills the group ends it too.
    subprocess.run(  # noqa: S603 -- our own script and two numbers.
        ["/bin/sh", "-c", f"({_WATCH}) &", str(parent), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def adopt_orphans() -> bool:
    """Become the parent of every orphan among the descendants. Returns whether that is possible."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    """Call prctl(2), if this system has it."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    return call is not None and call(option, value) == 0


def children() -> list[int]:
    """Pids of this process's children, by the parent in each `stat`; none without a /proc."""
    here = os.getpid()
    found = []
    for stat in PROC.glob("[0-9]*/stat"):
        # The command's name, in parentheses, may hold anything; the parent is the second field on.
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int(stat.read_bytes().rpartition(b")")[2].split()[1]) == here:
                found.append(int(stat.parent.name))
    return found


def environment(pid: int) -> list[bytes]:
    """The environment a process was started with, as `name=value`; empty if it is not known."""
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def rss_bytes(pid: int) -> int:
    """Resident memory of a process; 0 when it has gone."""
    try:
        with open(f"{PROC}/{pid}/statm", "rb") as statm:  # noqa: PTH123 -- the hot form of a tiny read.
            return int(statm.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0 if HAS_PROC else int(_ps("rss", pid) or 0) * 1024


def has_word(pid: int, word: bytes) -> bool:
    """Whether a process runs now with this word on its command line; a zombie has none."""
    try:
        return word in (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        # `ps` separates words by spaces, which the word itself may contain.
        return not HAS_PROC and b" %b " % word in b" %b " % _ps("command", pid)


def works_in(pid: int, folder: Path, program: str) -> bool:
    """Whether a process may have this working directory.

    Where that is not known, whether it is alive and its command names the program.
    """
    try:
        return (PROC / str(pid) / "cwd").readlink() == folder
    except FileNotFoundError:  # Gone, or a zombie; or a system without a /proc.
        if HAS_PROC or _ps("stat", pid).startswith(b"Z"):
            return False
        return program.encode() in _ps("command", pid)
    except PermissionError:
        return True


def oom_kills() -> int:
    """How often the kernel has killed a process for want of memory; 0 if that is not known."""
    try:
        lines = (PROC / "vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _ps(field: str, pid: int) -> bytes:
    """One field of a process, from `ps`; empty when it has gone."""
    done = subprocess.run(  # noqa: S603 -- a name of ours and a number are the arguments.
        ["ps", "-ww", "-o", f"{field}=", "-p", str(pid)],  # noqa: S607 -- where ps is differs.
        capture_output=True,
        check=False,
    )
    return done.stdout.strip()
