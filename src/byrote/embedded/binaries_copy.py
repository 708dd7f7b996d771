# SPDX-License-Identifier: MIT
"""Copies PostgreSQL's programs to where the server's user can reach them.

Needed when root installed them below a private directory (a virtual environment in a home of
mode 0700). The copy is made once for each build, in our own directory, and appears whole or not
at all.
"""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

from byrote.embedded import home
from byrote.embedded.account import Account
from byrote.embedded.binaries import Binaries
from byrote.embedded.errors import HomeUnusable
from byrote.embedded.locks import hold

_PARTS = ("bin", "lib", "lib64", "share")


def within_reach(binaries: Binaries, account: Account | None) -> Binaries:
    """Return these binaries, or a copy of them, where the account can run them."""
    if account is None or _runs(account, binaries.path):
        return binaries
    _refuse_unmovable(binaries, account)
    target = home.ROOT_STATE / "pgbin" / f"{binaries.release}-{_digest(binaries)}"
    prefix = binaries.path.parent
    home.make_directories(target.parent)
    with hold(target.parent / "copy.lock"):
        if not target.exists():
            _copy(prefix, target)
    copied = replace(binaries, path=target / prefix.parent.name / prefix.name / "bin")
    if not _runs(account, copied.path):
        raise HomeUnusable(target, f"{account.name} may not run the programs in it")
    return copied


def _runs(account: Account, path: Path) -> bool:
    needed = [path / "postgres", path / "initdb"]
    share = path.parent / "share"
    return all(map(account.reaches, [*needed, share] if share.is_dir() else needed))


def _refuse_unmovable(binaries: Binaries, account: Account) -> None:
    """Raise unless the installation is self-contained: a whole prefix is never copied."""
    share = binaries.path.parent / "share"
    if not any((share / part / "postgres.bki").exists() for part in (".", "postgresql")):
        raise HomeUnusable(
            binaries.path, f"PostgreSQL must run as {account.name}, which may not run it there"
        )


def _digest(binaries: Binaries) -> str:
    with (binaries.path / "postgres").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:10]


def _copy(prefix: Path, target: Path) -> None:
    staging = target.with_name("new")
    shutil.rmtree(staging, ignore_errors=True)  # Left by a copy that was killed.
    package = prefix.parent
    for part in _PARTS:
        if (prefix / part).is_dir():
            copy = staging / package.name / prefix.name / part
            shutil.copytree(prefix / part, copy, symlinks=True)
    libs = package.with_name(f"{package.name}.libs")
    if libs.is_dir():
        # The programs look for them at $ORIGIN/../../../<package>.libs.
        shutil.copytree(libs, staging / libs.name, symlinks=True)
    _open_up(staging)
    staging.rename(target)


def _open_up(staging: Path) -> None:
    """Let all users read our copy, whatever umask the original was installed under."""
    staging.chmod(0o755)
    for path in staging.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
