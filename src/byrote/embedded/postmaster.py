# SPDX-License-Identifier: MIT
"""Starts, recognises and stops the server's first process, the postmaster.

A server runs for a home if `postmaster.pid` names a process whose command line
names our data directory. The file alone proves nothing: it survives kill -9 and a reboot, and
still contains `ready`. Everything here happens under the start lock, so only a process that was
killed while starting, or a program other than Byrote, can change things meanwhile.

A start has no time limit while its process lives, because recovery after a crash may be long.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from byrote.embedded.errors import StartFailed, StopFailed
from byrote.embedded.home import Home
from byrote.embedded.process import Runner, bound_log, log_size, log_tail
from byrote.system.processes import has_pidfds, has_word, signal_and_wait, works_in

_POLL_S: Final = 0.01
_ORPHANS_S: Final = 60.0
_FAST_S: Final = 60.0
_IMMEDIATE_S: Final = 20.0

# Stored so that the next check reaps a dead postmaster: unreaped, it would still
# answer kill(pid, 0) and PostgreSQL would believe it is running.
_children: Final[set[int]] = set()


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The contents of a running server's postmaster.pid."""

    pid: int
    started: str
    port: int
    socket_dir: Path
    listens: bool
    status: str

    @property
    def ready(self) -> bool:
        """Whether it accepts connections."""
        return self.status == "ready"


def find_running(home: Home) -> Postmaster | None:
    """The postmaster of this home, ready or not, if its process exists."""
    reap()
    found = _read(home)
    return found if found and is_ours(found.pid, home.data) else None


def is_ours(pid: int, data: Path) -> bool:
    """Whether this process runs now and its command line names our data directory."""
    return has_word(pid, os.fsencode(data))


def reap() -> None:
    """Reap postmasters of this process that have ended."""
    for pid in tuple(_children):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:  # Another thread was quicker, or we are a forked child.
            ended = pid
        if ended:
            _children.discard(pid)


def await_ready(home: Home) -> Postmaster | None:
    """Wait for a running server to be ready; None if there is none, or if it ends instead."""
    while running := find_running(home):
        if running.ready:
            return running
        if running.status == "stopping":
            # It accepts no new clients, and may be waiting for old ones to leave: stop it faster.
            stop(home, running)
        time.sleep(_POLL_S)
    return None


def start(runner: Runner, socket_dir: Path, settings: Mapping[str, str]) -> Postmaster:
    """Start the server and wait until it is ready, or raise StartFailed."""
    args = ["-D", str(runner.home.data), "-k", str(socket_dir)]
    for name, value in settings.items():
        args += ["-c", f"{name}={value}"]
    bound_log(runner.home.log)
    patience = time.monotonic() + _ORPHANS_S
    while True:
        _disclaim_stale(runner.home)
        _clear_stale_sockets(runner.home, socket_dir)
        before = log_size(runner.home.log)
        child = runner.spawn("postgres", args, stdin=subprocess.DEVNULL)
        if running := _await_child(runner.home, child):
            _children.add(child.pid)
            child.returncode = 0  # It may outlive us: Popen need not warn, we reap by the pid.
            return running
        printed = log_tail(runner.home.log, before)
        # The children of a killed postmaster need a moment to notice and exit. And a starter
        # killed at the wrong moment may have left a server that is not visible yet.
        if other := await_ready(runner.home):
            return other
        if not _passes(printed) or time.monotonic() > patience:
            raise StartFailed(runner.home.log, printed)
        time.sleep(_POLL_S)


def _passes(printed: str) -> bool:
    """Whether a killed server is still ending: its memory or its process still exists."""
    return "pre-existing shared memory block" in printed or "lock file" in printed


def stop(home: Home, running: Postmaster) -> None:
    """Shut the server down fast (clients are cut off, nothing is lost) and wait for its end."""
    for number, patience in ((signal.SIGINT, _FAST_S), (signal.SIGQUIT, _IMMEDIATE_S)):
        if _signal_and_await(running.pid, home.data, number, patience):
            reap()
            with contextlib.suppress(OSError):
                running.socket_dir.rmdir()
            return
    raise StopFailed(running.pid, home.data)


def _read(home: Home) -> Postmaster | None:
    try:
        lines = (home.data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    lines += [""] * (8 - len(lines))  # It is written in steps.
    if not lines[0].strip().isdecimal() or not lines[3].strip().isdecimal():
        return None
    return Postmaster(
        pid=int(lines[0]),
        started=lines[2].strip(),
        port=int(lines[3]),
        socket_dir=Path(lines[4]),
        listens=bool(lines[5].strip()),
        status=lines[7].strip(),
    )


def _await_child(home: Home, child: subprocess.Popen[bytes]) -> Postmaster | None:
    try:
        while child.poll() is None:
            found = _read(home)
            if found and found.pid == child.pid and found.ready:
                return found
            time.sleep(_POLL_S)
    except BaseException:
        child.terminate()  # Interrupted before any process could use it.
        child.wait()
        raise
    return None


def _disclaim_stale(home: Home) -> None:
    """Write our own pid into a stale postmaster.pid, so that PostgreSQL ignores it.

    The pid may belong to another program now (after a restart of a container it often does), or
    to a zombie; PostgreSQL would refuse to start. It ignores the pid of its parent process, which
    is ours. Removing the file instead would also remove the key by which PostgreSQL finds
    processes of the dead server that still write to the data directory.
    """
    found = _read(home)
    if found is None or _may_be_server(found.pid, home.data):
        return
    path = home.data / "postmaster.pid"
    rest = path.read_text().split("\n", 1)[1]
    with path.open("r+") as file:  # In place: it stays the server user's file.
        file.write(f"{os.getpid()}\n{rest}")
        file.truncate()


def _clear_stale_sockets(home: Home, socket_dir: Path) -> None:
    """Remove the sockets of dead servers: their lock files have the same trouble with pids."""
    for lock in socket_dir.glob(".s.PGSQL.*.lock"):
        holder = lock.read_text().split("\n", 1)[0].strip()
        if not holder.isdecimal() or not _may_be_server(int(holder), home.data):
            lock.with_suffix("").unlink(missing_ok=True)
            lock.unlink()


def _may_be_server(pid: int, data: Path) -> bool:
    """Whether the process may be a server of this data directory, however it was started."""
    # PostgreSQL passes over other users' processes by itself.
    return is_ours(pid, data) or works_in(pid, data, "postgres")


def _signal_and_await(pid: int, data: Path, number: signal.Signals, patience: float) -> bool:
    """Signal our postmaster; returns whether it ended in time, True if it had ended before."""
    deadline = time.monotonic() + patience
    if has_pidfds():
        return signal_and_wait(pid, number, patience, if_it=lambda: is_ours(pid, data))
    if is_ours(pid, data):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    while is_ours(pid, data):
        if time.monotonic() > deadline:
            return False
        reap()
        time.sleep(_POLL_S)
    return True
