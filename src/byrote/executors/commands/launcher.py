# SPDX-License-Identifier: MIT
"""Starts the commands of a supervisor through one helper process, the warden's parent."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from byrote.executors.commands import warden as warden_program
from byrote.system.memory import make_file

PATIENCE_S = 5.0
"""How long the helper process may take to accept a request before it is given up."""


class Launcher:
    """Starts commands through wardens, which a helper process forks when they are needed."""

    def __init__(self) -> None:
        self._link: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._idle: list[socket.socket] = []

    def spawn(self, request: Mapping[str, Any], fds: Sequence[int]) -> socket.socket:
        """Start a command. Returns its warden's socket; raises OSError if it cannot be started."""
        word, files = b"R" + json.dumps(request).encode(), list[int]()
        if len(word) > warden_program.REQUEST_MAX:
            word, files = b"R", [memory_file(word[1:])]
        try:
            while self._idle:
                warden = self._idle.pop()
                try:
                    socket.send_fds(warden, [word], [*files, *fds])
                except OSError:
                    warden.close()  # The warden was killed while it was idle.
                else:
                    return warden
            warden = self._hire()
            socket.send_fds(warden, [word], [*files, *fds])
            return warden
        finally:
            for fd in files:
                os.close(fd)

    def release(self, warden: socket.socket, *, well: bool) -> None:
        """Take a warden back when its command has ended; a broken one is closed."""
        if well:
            self._idle.append(warden)
        else:
            warden.close()

    def _hire(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            try:
                self._ask(theirs)
            except OSError:
                # The helper process has died; the commands that it had started continue without it.
                self._leave()
                self._ask(theirs)
        return ours

    def _ask(self, theirs: socket.socket) -> None:
        socket.send_fds(self._link or self._open(), [b"W"], [theirs.fileno()])

    def _open(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 -- our own file, our own arguments.
                # Isolated and without site: nothing of the user's runs here, and it starts fast.
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-X",
                    "utf8",
                    warden_program.__file__,
                    str(theirs.fileno()),
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        ours.settimeout(PATIENCE_S)
        self._link = ours
        return ours

    def close(self) -> None:
        """Close wardens and helper; commands under way have wardens that are not idle."""
        for idle in self._idle:
            idle.close()
        self._idle = []
        self._leave()

    def _leave(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_S)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process = None


def supported() -> bool:
    """Whether this system can execute commands: a warden must be able to adopt their orphans."""
    return warden_program.prctl is not None


class Pipes:
    """The descriptors of one attempt: ours to read and write, the command's to pass on."""

    def __init__(self, passed: bytes | None) -> None:
        self.theirs: list[int] = []
        self.stdin: int | None = None
        theirs_in, self.stdin = os.pipe()
        self.stdout, theirs_out = os.pipe()
        self.stderr, theirs_err = os.pipe()
        self.envelope, theirs_envelope = os.pipe()
        self.theirs += [theirs_in, theirs_out, theirs_err, theirs_envelope]
        if passed is not None:
            self.theirs.append(memory_file(passed))
        for fd in (self.stdin, self.stdout, self.stderr, self.envelope):
            os.set_blocking(fd, False)

    def hand_over(self) -> None:
        """Close the command's ends here; the command has inherited them."""
        for fd in self.theirs:
            os.close(fd)
        self.theirs = []

    def close(self) -> None:
        """Close our ends that are still open."""
        self.hand_over()
        for fd in (self.stdin, self.stdout, self.stderr, self.envelope):
            if fd is not None:
                os.close(fd)


def memory_file(text: bytes) -> int:
    """A descriptor of an anonymous file with this text."""
    fd = make_file("request")
    left = memoryview(text)
    while left:
        left = left[os.write(fd, left) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
