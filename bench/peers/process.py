# SPDX-License-Identifier: MIT
"""A peer's process as the harness sees it: lines in, lines out, and a deadline on every wait."""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bench.peers import environment
from bench.peers.peer import URL_VARIABLE

_END_SECONDS = 10
_SHOWN_CHARACTERS = 400


class PeerError(Exception):
    """A peer did not do what its workload asks; the message says what was seen."""


class Process:
    """One started process of a peer."""

    def __init__(self, popen: "subprocess.Popen[bytes]", errors: IO[bytes]) -> None:
        self._popen = popen
        self._errors = errors
        self._read = b""

    @property
    def pid(self) -> int:
        return self._popen.pid

    def release(self) -> None:
        """Let the process go on past the point where it said it is ready."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(b"go\n")
        self._popen.stdin.flush()

    def line(self, deadline: float) -> str:
        """The next line the process says."""
        assert self._popen.stdout is not None
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0:
                raise PeerError(f"said nothing in time; {self.complaint()}")
            if select.select([self._popen.stdout], [], [], min(left, 1))[0]:
                chunk = os.read(self._popen.stdout.fileno(), 65_536)
                if not chunk:
                    raise PeerError(f"ended early; {self.complaint()}")
                self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def ready(self, deadline: float) -> None:
        """Wait until the process says it is ready."""
        said = self.line(deadline)
        if said != "ready":
            raise PeerError(f"said {said!r} where 'ready' was expected")

    def check_alive(self) -> None:
        """Raise if the process has ended."""
        if self._popen.poll() is not None:
            raise PeerError(f"ended with {self._popen.returncode}; {self.complaint()}")

    def complaint(self) -> str:
        """The end of what the process wrote to stderr."""
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()
        return f"stderr: ...{text[-_SHOWN_CHARACTERS:]}" if text else "stderr is empty"

    def end(self) -> None:
        """End the process: politely by closing its stdin, then by force."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        try:
            self._popen.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


@contextmanager
def started(python: Path, url: str, *arguments: str) -> Iterator[Process]:
    """A process of a peer against the database at `url`, ended when the block is left."""
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [str(python), "-m", "bench.peers.peer", *arguments],
            cwd=environment.ROOT,
            # By environment: a URL may hold a password, and arguments are public.
            env=environment.environ(**{URL_VARIABLE: url}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as popen,
    ):
        process = Process(popen, errors)
        try:
            yield process
        finally:
            process.end()
