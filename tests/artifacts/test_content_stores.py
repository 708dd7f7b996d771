# SPDX-License-Identifier: MIT
"""Directories and object stores keep the same promises."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

from byrote.artifacts.content_store import (
    ContentStore,
    content_store_for,
    open_content_store,
    pieces,
)
from byrote.artifacts.directory import ASIDE, NEW, Directory
from byrote.artifacts.objects import PART, Objects
from byrote.core.artifact import ArtifactRefused, UnknownArtifact
from byrote.core.errors import BadOption
from tests.artifacts.bucket import NAME, open_bucket

DATA = b"some content" * 100_000
DIGEST = hashlib.sha256(DATA).hexdigest()
SHARD = int(DIGEST[:2], 16)
DAY = timedelta(days=1)
NOW = timedelta(seconds=-60)
"""A grace that ends in the future: everything is old."""


def content() -> Iterator[bytes]:
    return pieces(DATA)


def nothing(hashes: Sequence[str]) -> list[str]:
    return []


@pytest.fixture(params=["directory", "memory", "local", "s3"])
def contents(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ContentStore]:
    match request.param:
        case "directory":
            yield Directory(tmp_path)
        case "memory":
            yield Objects(MemoryStore(), "test://")
        case "local":
            yield Objects(LocalStore(str(tmp_path)), "test://")
        case _:
            with open_bucket() as bucket:
                for name, value in bucket.environment.items():
                    monkeypatch.setenv(name, value)
                yield Objects.at(f"s3://{NAME}/folder/home")


def test_a_content_is_found_by_its_hash(contents: ContentStore) -> None:
    assert contents.store(content) == (DIGEST, len(DATA))
    assert contents.has(DIGEST)
    assert b"".join(contents.read(DIGEST)) == DATA


def test_storing_again_changes_nothing(contents: ContentStore) -> None:
    assert contents.store(content) == contents.store(content)
    assert b"".join(contents.read(DIGEST)) == DATA


def test_reading_a_missing_content_raises(contents: ContentStore) -> None:
    assert not contents.has(DIGEST)
    with pytest.raises(UnknownArtifact, match=DIGEST):
        next(contents.read(DIGEST))


def test_a_content_that_breaks_off_leaves_nothing(contents: ContentStore) -> None:
    def broken() -> Iterator[bytes]:
        yield DATA
        raise ArtifactRefused("no")

    with pytest.raises(ArtifactRefused):
        contents.store(broken)
    assert not contents.has(DIGEST)


def test_old_contents_nothing_refers_to_are_swept(contents: ContentStore) -> None:
    contents.store(content)

    assert contents.sweep(SHARD, nothing, grace=DAY, page=10) == 0
    assert contents.sweep((SHARD + 1) % 256, nothing, grace=NOW, page=10) == 0
    assert contents.sweep(SHARD, list, grace=NOW, page=10) == 0
    assert contents.has(DIGEST)
    assert contents.sweep(SHARD, nothing, grace=NOW, page=10) == 1
    assert not contents.has(DIGEST)


def test_contents_that_are_needed_do_not_hide_others_behind_them(tmp_path: Path) -> None:
    contents = Directory(tmp_path)
    names = [f"00{n:062x}" for n in range(25)]
    (tmp_path / "00").mkdir()
    for name in names:
        (tmp_path / "00" / name).touch()

    assert contents.sweep(0, lambda hashes: set(hashes) - {names[7]}, grace=NOW, page=10) == 1
    assert [name for name in names if not contents.has(name)] == [names[7]]


def test_a_content_stored_again_during_a_sweep_stays(contents: ContentStore) -> None:
    """A second run stores the same content after the sweep asked, before it removes."""
    contents.store(content)

    assert contents.sweep(SHARD, then(lambda: contents.store(content)), grace=NOW, page=10) == 0
    assert contents.has(DIGEST)


def then(happens: Callable[[], object]) -> Callable[[Sequence[str]], list[str]]:
    """Nothing is referred to when first asked; then something happens, and all is."""
    asked = 0

    def referred(hashes: Sequence[str]) -> list[str]:
        nonlocal asked
        asked += 1
        if asked > 1:
            return list(hashes)
        happens()
        return []

    return referred


def test_a_sweep_hides_a_content_before_its_last_look(tmp_path: Path) -> None:
    """The row came after the sweep's last check, so its writer checks that the content exists."""
    contents = Directory(tmp_path)
    contents.store(content)
    seen: list[bool] = []

    def referred(hashes: Sequence[str]) -> list[str]:
        seen.append(contents.has(DIGEST))
        return []

    assert contents.sweep(SHARD, referred, grace=NOW, page=10) == 1
    # At the last look it was out of sight already: a row that comes later finds it missing.
    assert seen == [True, False]


def test_what_a_crashed_sweep_left_aside_comes_back_if_it_is_needed(tmp_path: Path) -> None:
    contents = Directory(tmp_path)
    contents.store(content)
    path = tmp_path / DIGEST[:2] / DIGEST
    path.rename(path.with_name(DIGEST + ASIDE))

    assert contents.sweep(SHARD, list, grace=NOW, page=10) == 0
    assert b"".join(contents.read(DIGEST)) == DATA


def test_what_a_crashed_writer_left_is_swept_when_it_is_old(tmp_path: Path) -> None:
    contents = Directory(tmp_path)
    contents.store(content)
    left = tmp_path / NEW / "1-1"
    left.write_bytes(b"half")
    contents.sweep(0, list, grace=DAY, page=10)
    assert left.exists()
    os.utime(left, (0, 0))
    contents.sweep(0, list, grace=DAY, page=10)

    assert not left.exists()


def test_contents_are_not_for_everybodys_eyes(tmp_path: Path) -> None:
    contents = Directory(tmp_path / "kept" / "home")
    contents.store(content)

    assert (tmp_path / "kept" / "home").stat().st_mode & 0o077 == 0
    assert (tmp_path / "kept" / "home" / DIGEST[:2] / DIGEST).stat().st_mode & 0o007 == 0


def test_databases_that_share_a_place_have_their_own_part_of_it(tmp_path: Path) -> None:
    one, other = (content_store_for(str(tmp_path), home) for home in ("a", "b"))
    one.store(content)

    assert not other.has(DIGEST)
    assert other.sweep(SHARD, nothing, grace=NOW, page=10) == 0
    assert open_content_store(one.url).has(DIGEST)


def test_a_url_no_driver_knows_is_refused() -> None:
    with pytest.raises(BadOption, match="nonsense"):
        open_content_store("nonsense://bucket/folder")


def test_a_large_content_goes_to_s3_in_parts_and_appears_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = b"x" * (2 * PART + 1)
    with open_bucket() as bucket:
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        contents = Objects.at(f"s3://{NAME}/large/home")
        digest, size = contents.store(lambda: pieces(data))

        assert size == len(data)
        assert list(bucket.objects) == [f"large/home/{digest[:2]}/{digest}"]
        assert bucket.asked.count("PUT partNumber,uploadId") == 3
        assert b"".join(contents.read(digest)) == data


def test_sweeping_s3_looks_at_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"00{n:062x}" for n in range(7)]
    with open_bucket() as bucket:
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        contents = Objects.at(f"s3://{NAME}/pages/home")
        for name in names:
            bucket.objects[f"pages/home/00/{name}"] = (b"", datetime(2020, 1, 1, tzinfo=UTC))
        removed = contents.sweep(
            0, lambda hashes: set(hashes) - {names[0], names[6]}, grace=DAY, page=3
        )

        assert removed == 2
        assert [name for name in names if not contents.has(name)] == [names[0], names[6]]


def test_an_s3_url_names_a_bucket_and_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")

    assert content_store_for("s3://bucket/folder/", "home").url == "s3://bucket/folder/home"


def test_without_the_driver_an_object_store_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    with pytest.raises(BadOption, match=r"byrote\[s3\]"):
        open_content_store("s3://bucket/other")
