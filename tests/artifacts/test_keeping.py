# SPDX-License-Identifier: MIT
"""What a task's process does with the data before and after it asks for a row."""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from byrote.artifacts.content_store import open_content_store
from byrote.artifacts.directory import Directory
from byrote.core.artifact import INLINE_MAX, ArtifactRefused
from byrote.core.errors import ByroteError
from byrote.executors.runtime.asks import AskResult
from byrote.executors.runtime.context import Context
from byrote.executors.runtime.job import Job

AT = "2026-11-15T12:00:00+00:00"


class FakeDesk:
    """Grants everything, and may do something to the store before it answers."""

    def __init__(self, folder: Path, sweeps: int = 0, refusal: str | None = "") -> None:
        self.rows: list[Mapping[str, Any]] = []
        self._folder = folder
        self._sweeps = sweeps
        self._refusal = refusal

    def ask(self, _slot: int, verb: str, payload: Mapping[str, Any]) -> AskResult:
        if verb == "artifact.terms":
            return AskResult(True, {"max": 1 << 30, "location": str(self._folder)})
        if self._refusal != "":
            return AskResult(False, self._refusal)
        self.rows.append(payload)
        if len(self.rows) <= self._sweeps:
            digest = payload["hash"].hex()
            (self._folder / digest[:2] / digest).unlink()
        return AskResult(True, [payload["media_type"], payload["location"], AT])

    async def aask(self, slot: int, verb: str, payload: Mapping[str, Any]) -> AskResult:
        return self.ask(slot, verb, payload)


def context(ask_client: FakeDesk | None) -> Context:
    job = Job(3, "run", "t", 1, "", 2, None, "default", None, None, 0.0, b"\0" * 32, 0)
    return Context.of(job, ask_client)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 1, INLINE_MAX, INLINE_MAX + 1])
@pytest.mark.parametrize("form", ["bytes", "path"])
def test_a_mebibyte_is_the_border_between_the_places(tmp_path: Path, size: int, form: str) -> None:
    data = b"x" * size
    (tmp_path / "file").write_bytes(data)
    ask_client = FakeDesk(tmp_path / "kept")
    stored = context(ask_client).artifact("a", data if form == "bytes" else tmp_path / "file")
    [row] = ask_client.rows

    assert stored.read() == data
    assert row["hash"] == hashlib.sha256(data).digest()
    assert (row["run"], row["attempt"], row["size"]) == ("run", 2, size)
    assert (row["data"] == data) is (size <= INLINE_MAX)
    assert (row["location"] == "postgres") is (size <= INLINE_MAX)
    assert (tmp_path / "kept").exists() is (size > INLINE_MAX)


@pytest.mark.parametrize("data", ["text", 5, None, Path("/nonexistent"), Path("/tmp")])  # noqa: S108
def test_what_is_neither_bytes_nor_a_file_is_refused(tmp_path: Path, data: Any) -> None:
    ask_client = FakeDesk(tmp_path)
    with pytest.raises(ArtifactRefused, match=r"not|no file"):
        context(ask_client).artifact("a", data)
    assert ask_client.rows == []


@pytest.mark.parametrize("media", ["", "text", "text/", "TEXT/plain", "a/b\nc", 5])
def test_a_malformed_media_type_is_refused(tmp_path: Path, media: Any) -> None:
    with pytest.raises(ArtifactRefused, match="media type"):
        context(FakeDesk(tmp_path)).artifact("a", b"x", media)


def test_a_content_that_was_swept_before_its_row_came_is_stored_again(tmp_path: Path) -> None:
    ask_client = FakeDesk(tmp_path, sweeps=1)
    data = b"x" * (INLINE_MAX + 1)
    stored = context(ask_client).artifact("a", data)

    assert len(ask_client.rows) == 2
    assert stored.read() == data
    again = asyncio.run(context(FakeDesk(tmp_path, sweeps=1)).aartifact("a", data))
    assert again.read() == data
    with pytest.raises(ArtifactRefused, match="swept away"):
        context(FakeDesk(tmp_path, sweeps=9)).artifact("a", data)


def test_a_lost_lease_and_a_reason_reach_the_task(tmp_path: Path) -> None:
    with pytest.raises(ArtifactRefused, match="lease of this attempt is lost"):
        context(FakeDesk(tmp_path, refusal=None)).artifact("a", b"x")
    with pytest.raises(ArtifactRefused, match="no room"):
        context(FakeDesk(tmp_path, refusal="no room")).artifact("a", b"x")


def test_storing_without_a_supervisor_raises() -> None:
    with pytest.raises(ByroteError, match="need a worker that can be asked"):
        context(None).artifact("a", b"x")


def test_a_place_is_found_by_path_and_by_url(tmp_path: Path) -> None:
    strange = tmp_path / "a b#c"
    contents = Directory(strange)
    digest, _ = contents.store(lambda: iter([b"x"]))

    assert open_content_store(str(strange)).has(digest)
    assert open_content_store(contents.url).has(digest)
