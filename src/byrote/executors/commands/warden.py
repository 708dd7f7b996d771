# SPDX-License-Identifier: MIT
"""Program that starts commands for a supervisor and kills every process they leave behind.

The supervisor has threads and must not fork; this process has none and is small. It forks
*wardens*, one for each command that may run at once, and a warden forks one command after the
other. A warden is the subreaper of its command: every process that the command starts, double forks
and new sessions included, becomes the warden's child when its parent ends, and is killed before the
warden reports how the command ended.

Cleanup: a warden that reads the end of its socket (the supervisor has ended) kills all its
descendants. Processes that a killed warden leaves behind become children of this process, which
kills them; a warden whose parent has ended forks its commands so that they die with it (PDEATHSIG).

Otherwise a command without limits is spawned, not forked: that shares the warden's memory until the
program takes over, instead of copying it, and costs a third.

From the supervisor, over the socket named on the command line: one byte and one end of a new
warden's own socket, a sequence of packets. To a warden: `R` and a request as JSON with descriptors
(stdin, stdout, stderr, result, and perhaps one more, which become 0 to 4; before them a file that
holds the request, if it is long), `T` for SIGTERM, `K` for SIGKILL. From it: `P<pid>` when the
command has started, `E<errno>` when it could not be, `X<code> <cpu> <memory>` when it has ended:
its exit code, and the microseconds and bytes that it and those it waited for have used.

Only the standard library, and no import of Byrote: it must start fast and stay small.
"""

import contextlib
import ctypes
import errno
import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from typing import Any, Never

FDS_MAX = 8
REQUEST_MAX = 1 << 15
"""Bytes of a request that fit into a packet."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    # Last: from here on nothing large may be allocated before the program takes over.
    "memory": resource.RLIMIT_AS,
}
_RESET = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGXFSZ,
)
"""Signals that we, Python, or a shell that put us in the background ignore; a command does not."""
prctl: Any = getattr(ctypes.CDLL(None), "prctl", None)
"""None where commands cannot be executed: on any other system than Linux."""


def main() -> None:
    """Serve one supervisor until it closes its end."""
    link = socket.socket(fileno=int(sys.argv[1]))
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    gc.disable()
    gc.freeze()
    wardens: set[int] = set()
    while True:
        sources, none = [link.fileno(), wake], list[int]()
        ready, _, _ = select.select(sources, none, none)
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            reap(wardens)
        if link.fileno() in ready and not serve(link, wardens):
            return


def serve(link: socket.socket, wardens: set[int]) -> bool:
    """Fork a warden for the next socket received; False when the supervisor closed its end."""
    word, fds = receive(link, 1)
    if not word:
        return False
    launcher = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        # The warden's socket closes without a message: the supervisor treats it as lost.
        pid = -1
    if pid == 0:
        code = 1
        try:
            link.close()
            guard(socket.socket(fileno=fds[0]), launcher)
            code = 0
        finally:
            os._exit(code)
    if pid > 0:
        wardens.add(pid)
    for fd in fds:
        os.close(fd)
    return True


def receive(link: socket.socket, size: int) -> tuple[bytes, list[int]]:
    """A word and the descriptors that came with it; empty when the other side has gone."""
    try:
        word, fds, _, _ = socket.recv_fds(link, size, FDS_MAX)
    except OSError:
        return b"", []
    for fd in fds:
        # recv_fds passes no flags on, so they arrive open to every program.
        os.set_inheritable(fd, False)
    return word, fds


def reap(wardens: set[int]) -> None:
    """Reap wardens; the processes of one that was killed are now children of this process."""
    strays = False
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            wardens.discard(ended[0])
            strays = strays or ended[1] != 0
    if strays:
        for pid in children() - wardens:
            _kill(pid)


def guard(control: socket.socket, launcher: int) -> None:
    """Be a warden: run one command after the other, until the supervisor closes its end."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    while True:
        word, fds = receive(control, REQUEST_MAX)
        if not word:
            return
        # A message for a command that has ended meanwhile comes without descriptors.
        if fds:
            request = json.loads(word[1:] or _content(fds.pop(0)))
            ward(control, request, fds, forks=bool(request["limits"]) or os.getppid() != launcher)


def ward(control: socket.socket, request: dict[str, Any], fds: list[int], *, forks: bool) -> None:
    """Start the command, forward signals, and report its end once all its processes ended."""
    try:
        pid = fork(request, fds) if forks else _spawn_or_fork(request, fds)
    except OSError as error:
        _report(control, b"E%d" % (error.errno or errno.EINVAL))
        return
    finally:
        for fd in fds:
            os.close(fd)
    _report(control, b"P%d" % pid)
    watch(pid, control)
    _, status, used = os.wait4(pid, 0)
    clear(pid)
    cpu_us = int((used.ru_utime + used.ru_stime) * 1e6)
    code = os.waitstatus_to_exitcode(status)
    _report(control, b"X%d %d %d" % (code, cpu_us, used.ru_maxrss * 1024))


def _spawn_or_fork(request: dict[str, Any], fds: list[int]) -> int:
    try:
        return spawn(request, fds)
    except NotImplementedError:
        # A C library that spawns no sessions.
        return fork(request, fds)


def spawn(request: dict[str, Any], fds: list[int]) -> int:
    """Start the command in the fastest way; raises OSError with the reason if it cannot."""
    # Moved away first: the numbers may overlap with their targets.
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in fds]
    moves = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(moved)]
    cwd = os.open(".", os.O_PATH | os.O_CLOEXEC)
    failure = OSError(errno.ENOENT, "no such program")
    try:
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        for path in _candidates(request["argv"][0], request["env"].get("PATH", os.defpath)):
            try:
                return os.posix_spawn(
                    path,
                    request["argv"],
                    request["env"],
                    file_actions=moves,
                    setsid=True,
                    setsigdef=_RESET,
                )
            except OSError as error:
                failure = _worse(failure, error)
        raise failure
    finally:
        os.fchdir(cwd)
        for fd in (cwd, *moved):
            os.close(fd)


def _worse(known: OSError, error: OSError) -> OSError:
    # As a shell does: "could not be run" is more useful than "does not exist".
    return known if error.errno in (errno.ENOENT, errno.ENOTDIR) else error


def fork(request: dict[str, Any], fds: list[int]) -> int:
    """Start the command as a child that sets its own limits; raises OSError if it cannot."""
    read, write = os.pipe()
    warden = os.getpid()
    pid = os.fork()
    if pid == 0:
        become(request, fds, write, warden)
    os.close(write)
    refusal = os.read(read, 16)
    os.close(read)
    if refusal:
        os.waitpid(pid, 0)
        raise OSError(int(refusal), "the command could not be started")
    return pid


def _content(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()


def watch(pid: int, control: socket.socket) -> None:
    """Follow the supervisor's requests until the command ends."""
    pidfd = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    poller.register(control.fileno(), select.POLLIN)
    while True:
        ready = {fd for fd, _ in poller.poll()}
        if pidfd in ready:
            os.close(pidfd)
            return
        try:
            word = control.recv(1)
        except OSError:
            word = b""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGTERM if word == b"T" else signal.SIGKILL)
        if not word:
            poller.unregister(control.fileno())


def clear(group: int) -> None:
    """Kill the processes that the command left running: its group, and any that left the group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
            for pid in children():
                _kill(pid)
            os.waitpid(-1, 0)


def children() -> set[int]:
    """Processes whose parent is this one."""
    me, found = os.getpid(), set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError), open(f"{entry.path}/stat", "rb") as stat:  # noqa: PTH123 -- no pathlib in here: it would double the start.
                # The name in parentheses may hold anything, parentheses and spaces included.
                if int(stat.read().rpartition(b")")[2].split()[1]) == me:
                    found.add(int(entry.name))
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _report(control: socket.socket, words: bytes) -> None:
    with contextlib.suppress(OSError):
        control.send(words)


def become(request: dict[str, Any], fds: list[int], report: int, warden: int) -> Never:
    """Become the command, or report the number of the error that prevents it."""
    try:
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != warden:
            os._exit(1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        report = fcntl.fcntl(report, fcntl.F_DUPFD_CLOEXEC, 64)
        _arrange(fds)
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        paths = _candidates(request["argv"][0], request["env"].get("PATH", os.defpath))
        argv, env, failure = request["argv"], request["env"], errno.ENOENT
        _limit(request["limits"])
        for path in paths:
            try:
                os.execve(path, argv, env)  # noqa: S606 -- starting the operator's program is the point.
            except OSError as error:
                # As a shell does: "could not be run" is more useful than "does not exist".
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    failure = error.errno or failure
    except OSError as error:
        failure = error.errno or errno.EINVAL
    except MemoryError:
        failure = errno.ENOMEM
    os.write(report, b"%d" % failure)
    os._exit(127)


def _arrange(fds: list[int]) -> None:
    # Moved away first, then to their targets: the numbers may overlap.
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in fds]
    for target, fd in enumerate(moved):
        os.dup2(fd, target)


def _candidates(program: str, path: str) -> list[str]:
    if "/" in program:
        return [program]
    return [f"{folder or '.'}/{program}" for folder in path.split(":")]


def _limit(limits: dict[str, int]) -> None:
    for name, which in _LIMITS.items():
        if name in limits:
            _, hard = resource.getrlimit(which)
            most = limits[name] + (name == "cpu")
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(which, (min(limits[name], most), most))


if __name__ == "__main__":
    main()
