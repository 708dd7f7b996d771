# SPDX-License-Identifier: MIT
"""Creates the data directory, completely or not at all."""

import os
import shutil
from typing import Final

from byrote.embedded.errors import HomeUnusable
from byrote.embedded.home import Home
from byrote.embedded.process import Runner

USER: Final = "byrote"
DATABASE: Final = "byrote"
_INITDB: Final = (
    f"--username={USER}",
    "--auth-local=trust",  # Only the server's user, we and root can enter the socket's directory.
    "--auth-host=scram-sha-256",  # Any local user can reach a TCP port.
    "--encoding=UTF8",
    "--no-locale",
    "--no-instructions",
    "--no-sync",
)


def ensure_cluster(runner: Runner, *, durable: bool, lock_fd: int) -> None:
    """Ensure that there is a cluster of our major version with its database."""
    home = runner.home
    if home.data.exists():
        _check_version(runner)
        return
    shutil.rmtree(home.data_new, ignore_errors=True)  # Left by an initdb that was killed.
    home.data_new.mkdir(mode=0o700)
    if runner.account:
        os.chown(home.data_new, runner.account.uid, runner.account.gid)
    runner.run("initdb", [*_INITDB, str(home.data_new)], stdin="", lock_fd=lock_fd)
    run_single(runner, home.data_new, f"CREATE DATABASE {DATABASE};", lock_fd=lock_fd)
    if durable:
        os.sync()  # One sync for all files is much faster than initdb's one for each.
    home.data_new.rename(home.data)
    _sync_directory(home)


def run_single(runner: Runner, data: os.PathLike[str], statement: str, *, lock_fd: int) -> None:
    """Run one statement on a stopped cluster, or raise StartFailed."""
    args = ["--single", "-D", os.fspath(data), "-c", "exit_on_error=on", "postgres"]
    runner.run("postgres", args, stdin=f"{statement}\n", lock_fd=lock_fd)


def _check_version(runner: Runner) -> None:
    home, found = runner.home, runner.home.data / "PG_VERSION"
    if not found.exists():
        raise HomeUnusable(home.path, f"{home.data} is not a PostgreSQL data directory")
    made_by = found.read_text().strip()
    if made_by != str(runner.binaries.major):
        raise HomeUnusable(
            home.path,
            f"its data was made by PostgreSQL {made_by} and {runner.binaries.path} has "
            f"{runner.binaries.major}; BYROTE_PG_BIN can name version {made_by}",
        )


def _sync_directory(home: Home) -> None:
    fd = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
