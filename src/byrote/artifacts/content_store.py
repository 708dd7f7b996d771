# SPDX-License-Identifier: MIT
"""Stores of large artifacts: a directory or an object store, with one interface.

Contents are named by their hash and never change. They are stored before the row that refers to
them is written, so a sweep must expect contents whose row is not written yet: it removes only
contents that are old by the store's own clock. A directory's content is moved aside, looked up once
more, and moved back if a row was written meanwhile. The writer checks that the content still exists
after it has written the row.
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
"""How long a content without a row is kept: its row may not be written yet."""

type Referenced = Callable[[Sequence[str]], Collection[str]]
"""Which of these hashes some row refers to."""


class ContentStore(Protocol):
    """Stores contents by their SHA-256."""

    @property
    def url(self) -> str:
        """URL that opens this store again."""

    def store(self, source: Source) -> tuple[str, int]:
        """Store a content; returns its hash and size once it would survive a crash."""

    def has(self, digest: str) -> bool:
        """Whether the content exists."""

    def read(self, digest: str) -> Iterator[bytes]:
        """Yield the content in chunks; raises UnknownArtifact if it does not exist."""

    def sweep(self, shard: int, referred: Referenced, *, grace: timedelta, page: int) -> int:
        """Delete old contents of one shard that no row refers to; returns their number."""


@cache
def open_content_store(where: str) -> ContentStore:
    """Open the store at a path or URL; raises BadOption if its driver is not installed."""
    if "://" not in where:
        return Directory(Path(where).expanduser().absolute())
    parts = urlsplit(where)
    if parts.scheme == "file":
        return Directory(Path(unquote(parts.path)))
    # Imported only for object stores: the driver is large.
    from byrote.artifacts.objects import Objects  # noqa: PLC0415

    return Objects.at(where)


def content_store_for(where: str, prefix: str) -> ContentStore:
    """Open the part of a store that belongs to one database; databases may share a store."""
    return open_content_store(f"{where.rstrip('/')}/{prefix}")


def pieces(data: bytes | Path) -> Iterator[bytes]:
    """Data in pieces, never a whole file at once."""
    if isinstance(data, bytes):
        yield from (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))
        return
    with data.open("rb") as file:
        while piece := file.read(CHUNK):
            yield piece
