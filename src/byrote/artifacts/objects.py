# SPDX-License-Identifier: MIT
"""An object store of contents, by way of obstore: S3, Google Cloud Storage, Azure and the like."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

from byrote.artifacts.artifact import CHUNK, Source
from byrote.core.artifact import ArtifactRefused, UnknownArtifact
from byrote.core.errors import BadOption

PART = 8 << 20
"""Bytes of one part of an upload."""
PARTS_AT_ONCE = 2
PROBE = "clock"


def driver() -> Any:
    """The library that speaks to object stores."""
    try:
        return import_module("obstore")
    except ModuleNotFoundError:
        raise BadOption("Artifacts in an object store need obstore; install byrote[s3].") from None


class Objects:
    """Stores contents as objects named `<two digits>/<hash>`."""

    def __init__(self, store: Any, url: str) -> None:
        self._obstore = driver()
        self._store = store
        self._url = url

    @classmethod
    def at(cls, url: str) -> "Objects":
        """The store a URL names; keys and region come from the environment, vendor style."""
        obstore = driver()
        try:
            store = import_module("obstore.store").from_url(url)
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise BadOption(f"Artifacts cannot be stored at {url}: {_first_line(error)}") from None
        return cls(store, url)

    @property
    def url(self) -> str:
        """URL that opens this store again."""
        return self._url

    def store(self, source: Source) -> tuple[str, int]:
        """Upload in parts; an object appears whole or not at all."""
        # Its name is its hash, so it is read twice.
        hasher, size = hashlib.sha256(), 0
        for piece in source():
            hasher.update(piece)
            size += len(piece)
        digest = hasher.hexdigest()
        # Also over an existing one: that renews its time, and young contents are not swept.
        self._obstore.put(
            self._store,
            _key(digest),
            _unchanged(source(), digest),
            chunk_size=PART,
            max_concurrency=PARTS_AT_ONCE,
        )
        return digest, size

    def has(self, digest: str) -> bool:
        """Whether the content exists."""
        try:
            self._obstore.head(self._store, _key(digest))
        except FileNotFoundError:
            return False
        return True

    def read(self, digest: str) -> Iterator[bytes]:
        """Yield the content in chunks; raises UnknownArtifact if it does not exist."""
        try:
            found = self._obstore.get(self._store, _key(digest))
        except FileNotFoundError:
            raise UnknownArtifact(f"There is no {digest} at {self._url}.") from None
        for piece in found.stream(min_chunk_size=CHUNK):
            yield bytes(piece)

    def sweep(
        self,
        shard: int,
        referred: Callable[[Sequence[str]], Collection[str]],
        *,
        grace: timedelta,
        page: int,
    ) -> int:
        """Delete old contents of one shard that no row refers to; returns their number.

        Object stores cannot rename. Between the last check and the deletion a writer may store the
        same content again after a day without a reference. It notices when it checks after writing
        its row, unless it checks within that instant.
        """
        before = self._now() - grace
        removed = 0
        for listed in self._obstore.list(self._store, prefix=f"{shard:02x}/", chunk_size=page):
            stamps = {found["path"].rpartition("/")[2]: found["last_modified"] for found in listed}
            old = [digest for digest, at in stamps.items() if at < before]
            known = set(referred(old)) if old else set()
            doomed = [d for d in old if d not in known and self._stamp(d) == stamps[d]]
            if doomed:
                self._obstore.delete(self._store, [_key(digest) for digest in doomed])
            removed += len(doomed)
        return removed

    def _stamp(self, digest: str) -> Any:
        try:
            return self._obstore.head(self._store, _key(digest))["last_modified"]
        except FileNotFoundError:
            return None

    def _now(self) -> Any:
        # The time by the clock that stamps the objects, which is not ours.
        self._obstore.put(self._store, PROBE, b"")
        return self._obstore.head(self._store, PROBE)["last_modified"]


def _key(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


def _unchanged(pieces: Iterator[bytes], digest: str) -> Iterator[bytes]:
    hasher = hashlib.sha256()
    for piece in pieces:
        hasher.update(piece)
        yield piece
    if hasher.hexdigest() != digest:
        raise ArtifactRefused("The file changed while it was stored.")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
