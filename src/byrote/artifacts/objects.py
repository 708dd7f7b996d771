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
    """Keeps contents as objects named `<two digits>/<hash>`."""

    def __init__(self, store: Any, url: str) -> None:
        self._obstore = driver()
        self._store = store
        self._url = url

    @classmethod
    def at(cls, url: str) -> "Objects":
        """The store a URL names; keys and region come from the environment, as its vendor says."""
        obstore = driver()
        try:
            store = import_module("obstore.store").from_url(url)
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise BadOption(f"Artifacts cannot be kept at {url}: {_said(error)}") from None
        return cls(store, url)

    @property
    def url(self) -> str:
        """What finds this place again."""
        return self._url

    def store(self, source: Source) -> tuple[str, int]:
        """Upload in parts; an object appears whole or not at all."""
        # Its name is its hash, so it is read twice.
        hasher, size = hashlib.sha256(), 0
        for piece in source():
            hasher.update(piece)
            size += len(piece)
        digest = hasher.hexdigest()
        # Even over one that is there: that makes it young, and nobody sweeps what is young.
        self._obstore.put(
            self._store,
            _key(digest),
            _unchanged(source(), digest),
            chunk_size=PART,
            max_concurrency=PARTS_AT_ONCE,
        )
        return digest, size

    def has(self, digest: str) -> bool:
        """Whether the content is there."""
        try:
            self._obstore.head(self._store, _key(digest))
        except FileNotFoundError:
            return False
        return True

    def read(self, digest: str) -> Iterator[bytes]:
        """The content in pieces; UnknownArtifact when it is not there."""
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
        """Remove old contents of one shard that no row refers to; gives how many.

        Stores cannot rename. Between the last look and the removal lies an instant in which
        somebody might store the same content again after a day without a reference; who did finds
        out when it looks after its row was written, unless it did so within that instant.
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


def _said(error: Exception) -> str:
    return str(error).partition("\n")[0]
