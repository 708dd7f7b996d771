# SPDX-License-Identifier: MIT
"""An artifact for its reader: metadata, and content that is verified while it is read."""

import hashlib
import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

from byrote.core.artifact import ArtifactDamaged, ArtifactEntry

CHUNK = 1 << 18
"""Bytes per chunk."""

type Source = Callable[[], Iterator[bytes]]
"""Returns a new iterator over the content at each call."""


class Artifact:
    """Something a run stored under a name; its content is checked against its hash as it is read.

    The last chunk is yielded only if the hash is right, so no reader receives a complete content
    that differs from the stored one.
    """

    def __init__(self, entry: ArtifactEntry, source: Source) -> None:
        self._source = source
        self.run_id = entry.run_id
        """The run that stored it."""
        self.attempt = entry.attempt
        """The attempt that stored it."""
        self.name = entry.name
        """Its name within the run."""
        self.hash = entry.hash
        """SHA-256 of the content, in hexadecimal."""
        self.size = entry.size
        """Bytes of the content."""
        self.media_type = entry.media_type
        """Such as `image/png`."""
        self.location = entry.location
        """`postgres`, or the URL of the directory or bucket."""
        self.at = entry.at
        """When it was stored."""

    def __repr__(self) -> str:
        return f"Artifact({self.name!r}, {self.size:,} bytes, {self.hash[:12]}…)"

    def chunks(self) -> Iterator[bytes]:
        """Yield the content; raises ArtifactDamaged before the last chunk on a wrong hash."""
        hasher, seen, held = hashlib.sha256(), 0, b""
        for chunk in self._source():
            hasher.update(chunk)
            seen += len(chunk)
            if held:
                yield held
            held = chunk
        if seen != self.size or hasher.hexdigest() != self.hash:
            raise ArtifactDamaged(
                f"Artifact {self.name!r} of run {self.run_id} is damaged: {seen:,} bytes at "
                f"{self.location} with hash {hasher.hexdigest()} instead of {self.size:,} with "
                f"{self.hash}."
            )
        if held:
            yield held

    def open(self) -> BinaryIO:
        """Return a file with the content; its last bytes are readable only if the hash is right."""
        return cast("BinaryIO", io.BufferedReader(_Pieces(self.chunks())))

    def read(self) -> bytes:
        """The whole content, in memory."""
        return b"".join(self.chunks())


class _Pieces(io.RawIOBase):
    """A file that reads from an iterator of chunks."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
