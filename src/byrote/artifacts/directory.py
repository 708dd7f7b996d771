# SPDX-License-Identifier: MIT
"""A directory of contents: `<root>/<two digits>/<hash>`, whole or not there at all."""

import contextlib
import hashlib
import itertools
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from byrote.artifacts.artifact import CHUNK, Source
from byrote.core.artifact import UnknownArtifact

NEW = "new"
"""Contents that are being written."""
ASIDE = ".aside"
"""The ending of a content that is about to be removed."""
_numbers = itertools.count()


class Directory:
    """Stores contents as files, on a local disk or one that is mounted."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def url(self) -> str:
        """URL that opens this store again."""
        return self._root.as_uri()

    def store(self, source: Source) -> tuple[str, int]:
        """Write under a temporary name, then rename: a crash leaves all of it or nothing."""
        path, file = self._begin()
        hasher, size = hashlib.sha256(), 0
        try:
            with file:
                for piece in source():
                    hasher.update(piece)
                    size += len(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            target = self._path(hasher.hexdigest())
            _make(target.parent)
            # Also over an existing one: that one may be damaged, or about to be swept.
            path.replace(target)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        _sync(target.parent)
        return hasher.hexdigest(), size

    def has(self, digest: str) -> bool:
        """Whether the content exists."""
        return self._path(digest).exists()

    def read(self, digest: str) -> Iterator[bytes]:
        """Yield the content in chunks; raises UnknownArtifact if it does not exist."""
        try:
            file = self._path(digest).open("rb")
        except FileNotFoundError:
            raise UnknownArtifact(
                f"There is no {digest} in {self._root} on this machine. Mount the directory the "
                "worker writes to, or use an object store."
            ) from None
        with file:
            while piece := file.read(CHUNK):
                yield piece

    def sweep(
        self,
        shard: int,
        referred: Callable[[Sequence[str]], Collection[str]],
        *,
        grace: timedelta,
        page: int,
    ) -> int:
        """Delete old contents of one shard that no row refers to; returns their number."""
        if not self._root.is_dir():
            return 0
        before = self._now() - grace.total_seconds()
        if shard == 0:
            for path in _older(self._root / NEW, before):
                path.unlink(missing_ok=True)
        old = _older(self._root / f"{shard:02x}", before)
        return sum(_remove(some, referred) for some in itertools.batched(old, page))

    def _path(self, digest: str) -> Path:
        return self._root / digest[:2] / digest

    def _begin(self) -> tuple[Path, BinaryIO]:
        folder = self._root / NEW
        _make(folder)
        while True:
            path = folder / f"{os.getpid()}-{next(_numbers)}"
            with contextlib.suppress(FileExistsError):
                fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o640)
                return path, os.fdopen(fd, "wb")

    def _now(self) -> float:
        # The time by the clock that stamps the files, which on a network drive is not ours.
        path, file = self._begin()
        with file:
            now = os.fstat(file.fileno()).st_mtime
        path.unlink()
        return now


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    # Private, unless the operator creates the directory with other permissions.
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _older(folder: Path, before: float) -> list[Path]:
    found: list[Path] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.stat().st_mtime < before:
                    found.append(Path(entry.path))
    return found


def _remove(old: Sequence[Path], referred: Callable[[Sequence[str]], Collection[str]]) -> int:
    """Delete those contents of `old` that no row refers to; returns their number."""
    known = set(referred([_digest(path) for path in old]))
    aside = [moved for path in old if (moved := _aside(path, _digest(path) in known))]
    if not aside:
        return 0
    # A row may have been written between the query and the rename. A writer that writes its row
    # later finds the content missing and stores it again.
    known = set(referred([_digest(path) for path in aside]))
    for path in aside:
        with contextlib.suppress(FileNotFoundError):
            path.rename(path.with_suffix("")) if _digest(path) in known else path.unlink()
    return len({_digest(path) for path in aside} - known)


def _digest(path: Path) -> str:
    return path.name.removesuffix(ASIDE)


def _aside(path: Path, referenced: bool) -> Path | None:
    """Move an unreferenced content aside; one left aside by a crash is checked again."""
    if path.suffix == ASIDE:
        return path
    if referenced:
        return None
    with contextlib.suppress(FileNotFoundError):
        return path.rename(path.with_name(path.name + ASIDE))
    return None
