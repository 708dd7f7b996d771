# SPDX-License-Identifier: MIT
"""Finds the commit of the code; git runs while the app is being imported.

The repository is that of the code. The one around the current folder is only a guess, since it is
known before the code is; where the code is elsewhere, git runs once more.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from byrote.core.outcome import safe_text
from byrote.executors.runtime.provenance.project import is_project_file

PATIENCE_S = 1.0
"""Where git takes longer, it is not recorded whether the repository was changed."""


class GitCheckout:
    """The repository around a folder; git looks through it in the background."""

    def __init__(self, folder: Path) -> None:
        self.root = repository_of(folder)
        self._git = None if self.root is None else _start_git(self.root)

    def describe(self, files: Iterable[Path]) -> dict[str, Any] | None:
        """The commit in BYROTE_COMMIT, else that of the repository of the first file in one.

        The latter with whether tracked files were changed.
        """
        status = self._status()
        named = os.environ.get("BYROTE_COMMIT")
        if named:
            return {"commit": safe_text(named), "dirty": None}
        own = (repository_of(file.parent) for file in files if is_project_file(file))
        root = next((each for each in own if each is not None), None)
        if root is None:
            return None
        if root != self.root:
            self.root, self._git = root, _start_git(root)
            status = self._status()
        if status is None:
            return {"commit": head_of(self.root / ".git"), "dirty": None}
        lines = status.splitlines()
        commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid")), None)
        changed = any(not line.startswith("#") for line in lines)
        return {"commit": None if commit == "(initial)" else commit, "dirty": changed}

    def _status(self) -> str | None:
        if self._git is None:
            return None
        try:
            status, _ = self._git.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._git.kill()
            self._git.communicate()
            return None
        return status.decode("utf-8", "replace") if self._git.returncode == 0 else None


def repository_of(folder: Path) -> Path | None:
    """The root of the git repository that a folder is in."""
    around = (folder, *folder.parents)
    return next((parent for parent in around if (parent / ".git").exists()), None)


def _start_git(root: Path) -> subprocess.Popen[bytes] | None:
    quiet = subprocess.DEVNULL
    argv = ["git", "-C", str(root), "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    with contextlib.suppress(OSError):
        return subprocess.Popen(  # noqa: S603 -- fixed words and a folder's name.
            argv,
            stdin=quiet,
            stdout=subprocess.PIPE,
            stderr=quiet,
            # Reading the status must not take the lock that a concurrent commit needs.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    return None


def head_of(git: Path) -> str | None:
    """The commit that is checked out, read without git; None if that needs git."""
    with contextlib.suppress(OSError, ValueError):
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        if (git / name).is_file():
            return (git / name).read_text().strip()
        for line in (git / "packed-refs").read_text().splitlines():
            commit, _, ref = line.partition(" ")
            if ref == name:
                return commit
    return None
