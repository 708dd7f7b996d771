# SPDX-License-Identifier: MIT
"""Where large artifacts lie: a directory or an object store, behind one face.

Contents are named by their hash and never change. They are put there before the row that refers to
them is written, so whoever sweeps a place must expect a content whose row is about to come: only
what is old by the place's own clock is swept, and a directory's content is moved aside, looked up
once more, and moved back if a row has come meanwhile. Whoever stored it looks whether it is still
there after the row was written.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from byrote.artifacts.artifact import CHUNK, Source
from byrote.artifacts.directory import Directory

SHARDS = 256
GRACE = timedelta(days=1)
"""How long a content stays that no row refers to: its row may be about to come."""

type Referenced = Callable[[Sequence[str]], Collection[str]]
"""Which of these hashes some row refers to."""


class ContentStore(Protocol):
    """Keeps contents by their SHA-256."""

    @property
    def url(self) -> str:
        """What finds this place again."""

    def store(self, source: Source) -> tuple[str, int]:
        """Keep a content; gives its hash and size once it is safe from a crash."""

    def has(self, digest: str) -> bool:
        """Whether the content is there."""

    def read(self, digest: str) -> Iterator[bytes]:
        """The content in pieces; UnknownArtifact when it is not there."""

    def sweep(self, shard: int, referred: Referenced, *, grace: timedelta, page: int) -> int:
        """Remove old contents of one shard that no row refers to; gives how many."""


@cache
def open_place(where: str) -> ContentStore:
    """The place at a path or URL; BadOption when its driver is not installed."""
    if "://" not in where:
        return Directory(Path(where).expanduser().absolute())
    parts = urlsplit(where)
    if parts.scheme == "file":
        return Directory(Path(unquote(parts.path)))
    # Reached only by those who chose an object store: the driver is large.
    from byrote.artifacts.objects import Objects  # noqa: PLC0415

    return Objects.at(where)


def place_for(where: str, home: str) -> ContentStore:
    """The part of a place that belongs to one database: others may share it."""
    return open_place(f"{where.rstrip('/')}/{home}")


def pieces(data: bytes | Path) -> Iterator[bytes]:
    """Data in pieces, never a whole file at once."""
    if isinstance(data, bytes):
        yield from (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))
        return
    with data.open("rb") as file:
        while piece := file.read(CHUNK):
            yield piece
