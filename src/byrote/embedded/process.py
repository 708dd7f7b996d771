# SPDX-License-Identifier: MIT
"""Runs PostgreSQL's programs as the right user, detached from our terminal, into the log."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from byrote.embedded.account import Account
from byrote.embedded.binaries import Binaries
from byrote.embedded.errors import HomeUnusable, StartFailed
from byrote.embedded.home import Home

LOG_BYTES_MAX: Final = 10_000_000
_TAIL_BYTES: Final = 4000


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the programs of PostgreSQL for one home."""

    home: Home
    binaries: Binaries
    account: Account | None
    environ: Mapping[str, str]

    def spawn(
        self, program: str, args: Sequence[str], *, stdin: int, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a program; its output goes to the log."""
        account = self.account
        with open(self.home.log, "ab", opener=_private) as log:
            try:
                return subprocess.Popen(  # noqa: S603 - our arguments, no shell
                    [str(self.binaries.path / program), *args],
                    stdin=stdin,
                    stdout=log,
                    stderr=log,
                    cwd=self.home.path,
                    env=self._environ(),
                    user=account.uid if account else None,
                    group=account.gid if account else None,
                    extra_groups=[] if account else None,
                    pass_fds=pass_fds,
                    # Ctrl-C at our terminal is for this process: the server may have other users.
                    start_new_session=True,
                )
            except OSError as error:
                raise HomeUnusable(self.home.path, f"cannot run {program}: {error}") from error

    def run(self, program: str, args: Sequence[str], *, stdin: str, lock_fd: int) -> None:
        """Run a program to its end, or raise StartFailed with its output.

        It inherits the start lock: should we be killed, the next starter waits for it to end
        instead of working in the same directory at the same time.
        """
        before = log_size(self.home.log)
        child = self.spawn(program, args, stdin=subprocess.PIPE, pass_fds=(lock_fd,))
        with child:
            try:
                child.communicate(stdin.encode())
            except BaseException:
                child.kill()
                raise
        if child.returncode != 0:
            raise StartFailed(self.home.log, log_tail(self.home.log, before))

    def _environ(self) -> dict[str, str]:
        # PGPORT, PGDATA and the like are meant for other servers; C keeps the log in English.
        kept = {k: v for k, v in self.environ.items() if not k.startswith(("PG", "LC_"))}
        return kept | {"LC_ALL": "C"}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # A log shows statements, and with them data.


def bound_log(log: Path) -> None:
    """Start a new log when this one has grown large; one older log is kept."""
    if log_size(log) > LOG_BYTES_MAX:
        log.replace(log.with_name(f"{log.name}.1"))


def log_size(log: Path) -> int:
    """The size of the log in bytes; 0 if it does not exist."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def log_tail(log: Path, since: int) -> str:
    """The end of the output printed after the log had `since` bytes."""
    with log.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(since, end - _TAIL_BYTES))
        return file.read().decode(errors="replace").strip()
