# SPDX-License-Identifier: MIT
"""The setup of a measurement or demonstration: its own folder, server and worker."""

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import click

from byrote.assembly.settings import ALIASES, DATABASE_ALIAS
from byrote.assembly.variables import PREFIX, variable_of
from byrote.core.errors import ByroteError

STOP_S = 10.0
"""How long a worker may take to stop before it is killed."""
_SHOWN_CHARACTERS = 600


class StageFailed(ByroteError):
    """Something that a figure or the demo depends on failed; the message has its last output."""

    code = "stage_failed"


def log_step(text: str) -> None:
    """Write to standard error which step of the measurement begins."""
    click.echo(text, err=True)


@contextmanager
def own_folder(*, keep: bool = False) -> Iterator[Path]:
    """A new temporary folder, removed afterwards unless it is to be kept."""
    folder = Path(tempfile.mkdtemp(prefix="byrote-"))
    if os.geteuid() == 0:
        # The server does not run as root and must still reach its files.
        folder.chmod(0o755)
    try:
        yield folder
    finally:
        if not keep:
            rmtree(folder, ignore_errors=True)


class WorkerProcess:
    """A `byrote worker` in its own process; has its CPU time once it has ended."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.pid = process.pid
        self.log = log
        self.cpu_s = 0.0
        """User and system time of the supervisor and the hands it has reaped."""
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)

    @property
    def code(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self._process.returncode is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = usage.ru_utime + usage.ru_stime
        return self._process.returncode

    def check(self) -> None:
        """Raise StageFailed if it has ended."""
        if self.code is not None:
            raise StageFailed(f"The worker ended with code {self.code}. {self.last_words()}")

    def finish(self, seconds: float) -> None:
        """Wait until it ends by itself; raises StageFailed when it takes too long or fails."""
        if not self._wait(seconds):
            raise StageFailed(f"The worker was not done after {seconds:g} s. {self.last_words()}")
        if self.code:
            self.check()

    def stop(self) -> None:
        """Stop it with SIGTERM, or with SIGKILL if it does not end in `STOP_S`."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.code is None:
                os.kill(self.pid, number)
                self._wait(STOP_S)

    def close(self) -> None:
        """Stop it and close its pidfd."""
        self.stop()
        os.close(self._pidfd)

    def last_words(self) -> str:
        """The end of its log."""
        tail = self.log.read_text(errors="replace").strip()[-_SHOWN_CHARACTERS:]
        return f"Its log ends: {tail}" if tail else "Its log is empty."

    def _wait(self, seconds: float) -> bool:
        if self.code is None:
            select.select([self._pidfd], [], [], seconds)
        return self.code is not None


@contextmanager
def worker(
    app: str, url: str, *, folder: Path, drain: bool = False, **settings: str
) -> Iterator[WorkerProcess]:
    """A worker with default settings except these; its log is JSON, in the folder."""
    log = folder / f"worker-{app.partition(':')[0]}.log"
    command = [sys.executable, "-m", "byrote.cli.main", "worker", app]
    environ = environment(url, {"log_format": "json", **settings})
    with crew([*command, "--drain"] if drain else command, environ, folder, log) as running:
        yield running


@contextmanager
def crew(
    command: Sequence[str], environ: Mapping[str, str], folder: Path, log: Path
) -> Iterator[WorkerProcess]:
    """A worker started by this command, stopped afterwards if it still runs."""
    with log.open("ab") as out:
        process = subprocess.Popen(  # noqa: S603 -- our own module, our own arguments.
            command,
            env=environ,
            # Not in a folder where a byrote.toml of the user could change the measurement.
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            # Ctrl-C is for this process, which stops the worker in order.
            start_new_session=True,
        )
    running = WorkerProcess(process, log)
    try:
        yield running
    finally:
        running.close()


def environment(url: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process without any setting of Byrote's but these."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(PREFIX) and name not in {DATABASE_ALIAS, *ALIASES}
    }
    chosen = {**settings, "database_url": url}
    return {**ours, **{variable_of(name): value for name, value in chosen.items()}}
