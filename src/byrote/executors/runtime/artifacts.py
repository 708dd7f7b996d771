# SPDX-License-Identifier: MIT
"""Stores artifacts of a task: first the content in its store, then a row by an ask.

A small content is part of the ask. A large one is written by the task's own process, in pieces,
before it asks the supervisor for the row; if the row is refused, a sweep deletes the content.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from byrote.artifacts.artifact import Artifact
from byrote.artifacts.content_store import open_content_store, pieces
from byrote.core.artifact import (
    INLINE_MAX,
    POSTGRES,
    ArtifactEntry,
    ArtifactRefused,
    check_artifact,
    too_large,
)
from byrote.core.errors import ByroteError
from byrote.executors.runtime.asks import AskClient, AskResult

TERMS, STORE = "artifact.terms", "artifact.store"
AGAIN_MAX = 3


_terms: WeakKeyDictionary[AskClient, dict[str, Any]] = WeakKeyDictionary()
"""The location for contents and their size limit, as received from each client's supervisor."""


class ArtifactWriter:
    """Stores the artifacts of one attempt."""

    def __init__(self, ask_client: AskClient | None, slot: int, attempt: tuple[str, int]) -> None:
        if ask_client is None:
            raise ByroteError(
                "Artifacts need a worker that can be asked; this attempt is a command in a "
                "container without descriptors or in a replay, or no attempt at all."
            )
        self._ask_client = ask_client
        self._slot = slot
        self._run_id, self._attempt = attempt

    def keep(self, name: str, data: bytes | Path, media_type: str) -> Artifact:
        """Store in this thread, and wait for the row."""
        check_artifact(name, media_type)
        _check_may_block()
        if self._ask_client not in _terms:
            _terms[self._ask_client] = _granted(
                self._ask_client.ask(self._slot, TERMS, self._proof)
            )
        for _ in range(AGAIN_MAX):
            content = _Content(data, _terms[self._ask_client])
            row = self._ask_client.ask(self._slot, STORE, self._row(name, media_type, content))
            artifact = self._artifact(name, content, _granted(row))
            if content.is_there():
                return artifact
        raise self._swept(name)

    async def akeep(self, name: str, data: bytes | Path, media_type: str) -> Artifact:
        """Store in a thread, and await the row."""
        check_artifact(name, media_type)
        if self._ask_client not in _terms:
            _terms[self._ask_client] = _granted(
                await self._ask_client.aask(self._slot, TERMS, self._proof)
            )
        for _ in range(AGAIN_MAX):
            content = await asyncio.to_thread(_Content, data, _terms[self._ask_client])
            row = await self._ask_client.aask(
                self._slot, STORE, self._row(name, media_type, content)
            )
            artifact = self._artifact(name, content, _granted(row))
            if await asyncio.to_thread(content.is_there):
                return artifact
        raise self._swept(name)

    @property
    def _proof(self) -> dict[str, Any]:
        # Slots are reused: an ask that is sent after its attempt has ended must not be taken for
        # an ask of the next one.
        return {"run": self._run_id, "attempt": self._attempt}

    def _row(self, name: str, media_type: str, content: "_Content") -> dict[str, Any]:
        return self._proof | {
            "name": name,
            "media_type": media_type,
            "hash": content.digest,
            "size": content.size,
            "location": content.location,
            "data": content.small,
        }

    def _artifact(self, name: str, content: "_Content", row: list[Any]) -> Artifact:
        media_type, location, at = row
        entry = ArtifactEntry(
            run_id=self._run_id,
            attempt=self._attempt,
            name=name,
            hash=content.digest.hex(),
            size=content.size,
            media_type=media_type,
            location=location,
            at=datetime.fromisoformat(at),
        )
        return Artifact(entry, content.source)

    def _swept(self, name: str) -> ArtifactRefused:
        return ArtifactRefused(f"Artifact {name!r} was swept away {AGAIN_MAX} times; try again.")


def _check_may_block() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ArtifactRefused("An async task must not block its hand; write `await ctx.aartifact(…)`.")


def _granted(answer: AskResult) -> Any:
    if answer.ok:
        return answer.payload
    raise ArtifactRefused(
        answer.payload
        or "The lease of this attempt is lost: the run may be with another worker by now."
    )


class _Content:
    """Content that has been stored: in memory if it is small, else in the configured store."""

    def __init__(self, data: bytes | Path, terms: dict[str, Any]) -> None:
        self._limit: int = terms["max"]
        begin = _begin(data)
        if terms["location"] is None:
            self._weigh(begin)
            return
        small = _small(begin)
        self.small: bytes | None = small
        if small is None and "spool" in terms:
            self._hand_over(data, begin, terms["spool"])
            return
        if small is None:
            store = open_content_store(terms["location"])
            digest, self.size = store.store(lambda: self._limited(begin()))
            self.digest = bytes.fromhex(digest)
            self.location = store.url
            self.source: Callable[[], Iterator[bytes]] = lambda: store.read(digest)
            self.is_there: Callable[[], bool] = lambda: store.has(digest)
            return
        if len(small) > self._limit:
            raise too_large(self._limit)
        self.digest, self.size = hashlib.sha256(small).digest(), len(small)
        self.location = POSTGRES
        self.source = lambda: pieces(small)
        self.is_there = lambda: True

    def _hand_over(self, data: object, begin: Callable[[], Iterator[bytes]], spool: str) -> None:
        """A content that the worker sends: from the task's own file, or from one in the spool."""
        if isinstance(data, os.PathLike):
            self._weigh(begin)
            self.location = str(Path(data).absolute())
            return
        fd, path = tempfile.mkstemp(dir=spool)
        with os.fdopen(fd, "wb") as file:

            def written() -> Iterator[bytes]:
                for chunk in begin():
                    file.write(chunk)
                    yield chunk

            try:
                self._weigh(written)
            except BaseException:
                Path(path).unlink()
                raise
        self.source, self.location = begin, path

    def _weigh(self, begin: Callable[[], Iterator[bytes]]) -> None:
        """Compute hash and size only: in a replay, the original has already stored the content."""
        known, self.size = hashlib.sha256(), 0
        for chunk in self._limited(begin()):
            known.update(chunk)
            self.size += len(chunk)
        self.digest, self.small, self.location = known.digest(), None, ""
        self.source, self.is_there = begin, lambda: True

    def _limited(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        seen = 0
        for chunk in chunks:
            seen += len(chunk)
            if seen > self._limit:
                raise too_large(self._limit)
            yield chunk


def _begin(data: object) -> Callable[[], Iterator[bytes]]:
    if isinstance(data, bytearray | memoryview):
        data = bytes(data)
    if isinstance(data, bytes):
        whole = data
        return lambda: pieces(whole)
    if isinstance(data, os.PathLike):
        path = Path(data)
        if not path.is_file():
            raise ArtifactRefused(f"{str(path)!r} is not an existing file.")
        return lambda: pieces(path)
    raise ArtifactRefused(
        f"An artifact is bytes or the path of a file, not {type(data).__name__}; encode text first."
    )


def _small(begin: Callable[[], Iterator[bytes]]) -> bytes | None:
    """The whole content if it fits into PostgreSQL, or None."""
    found = bytearray()
    for piece in begin():
        found += piece
        if len(found) > INLINE_MAX:
            return None
    return bytes(found)
