# SPDX-License-Identifier: MIT
from pathlib import Path

import pytest

from byrote.cli.errors import FAILED, NOT_FOUND, USAGE
from tests.cli.console import byrote
from tests.store.steps.test_artifact import keep, lease
from tests.support import Db

RUN = "01932c4e-8d5b-7a90-b1c2-3d4e5f607182"


def test_artifacts_are_listed_for_people_and_programs(db: Db, url: str) -> None:
    held = lease(db)
    keep(db, held, "out/a.txt", b"hello")
    keep(db, held, "b", b"x" * 1500)
    said = byrote("runs", "artifacts", held.id, url=url)
    told = byrote("runs", "artifacts", held.id[:18], "--json", url=url).objects

    assert [line.split()[:4] for line in said.out.splitlines()[1:]] == [
        ["1", "b", "1,500", "text/plain"],
        ["1", "out/a.txt", "5", "text/plain"],
    ]
    assert [(a["name"], a["size"], a["location"]) for a in told] == [
        ("b", 1500, "postgres"),
        ("out/a.txt", 5, "postgres"),
    ]
    assert len(told[0]["hash"]) == 64


def test_a_run_without_artifacts_prints_a_message(db: Db, url: str) -> None:
    assert byrote("runs", "artifacts", lease(db).id, url=url).out == "Nothing was stored.\n"
    assert byrote("runs", "artifacts", RUN, url=url).code == NOT_FOUND


def test_an_artifact_is_fetched_to_standard_output_or_a_file(
    db: Db, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = lease(db)
    keep(db, held, "out/a.txt", b"hello\n")
    monkeypatch.chdir(tmp_path)

    assert byrote("runs", "fetch", held.id, "out/a.txt", "-o", "-", url=url).out == "hello\n"
    assert byrote("runs", "fetch", held.id, "out/a.txt", url=url).code == 0
    assert (tmp_path / "a.txt").read_bytes() == b"hello\n"
    again = byrote("runs", "fetch", held.id, "out/a.txt", url=url)
    assert (again.code, "exists" in again.err) == (USAGE, True)
    other = byrote("runs", "fetch", held.id, "out/a.txt", "-o", "b.txt", url=url)
    assert other.code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_what_is_not_there_is_named(db: Db, url: str) -> None:
    held = lease(db)
    keep(db, held, "a", b"hello")
    said = byrote("runs", "fetch", held.id, "b", url=url)
    earlier = byrote("runs", "fetch", held.id, "a", "--attempt", "2", "-o", "-", url=url)

    assert (said.code, earlier.code) == (NOT_FOUND, NOT_FOUND)
    assert "There are: a." in said.err


def test_a_damaged_content_never_becomes_a_file(db: Db, url: str, tmp_path: Path) -> None:
    held = lease(db)
    keep(db, held, "a", b"hello")
    db.execute("alter table byrote_artifact_blobs drop constraint byrote_blob_is_sound")
    try:
        db.execute("update byrote_artifact_blobs set data = 'hallo'")
        said = byrote("runs", "fetch", held.id, "a", "-o", str(tmp_path / "a"), url=url)
    finally:
        db.execute("truncate byrote_artifact_blobs")
        db.execute(
            "alter table byrote_artifact_blobs add constraint byrote_blob_is_sound check "
            "(size = octet_length(data) and size <= 1048576 and hash = sha256(data))"
        )

    assert (said.code, "is damaged" in said.err) == (FAILED, True)
    assert list(tmp_path.iterdir()) == []
