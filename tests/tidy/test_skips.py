# SPDX-License-Identifier: MIT
"""Where everything must be tested, a test that is skipped fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

PROJECT = """
import unittest
import pytest
from tests.programs import ELSEWHERE, require, require_package

@pytest.mark.needs("curl")
def test_marked(): ...

def test_program():
    require("curl")

def test_package():
    require_package("no_such_package", "install it")

def test_import():
    pytest.importorskip("no_such_package")

@pytest.fixture
def browser():
    pytest.skip("no browser")

def test_fixture(browser): ...

@pytest.mark.skipif(True, reason="whim")
def test_marker(): ...

class Old(unittest.TestCase):
    @unittest.skip("whim")
    def test_old(self): ...

def test_elsewhere():
    pytest.skip(ELSEWHERE + "another user")

@pytest.mark.xfail
def test_expected():
    raise ValueError
"""
MODULE = """
import pytest
pytest.importorskip("no_such_package")
"""


@pytest.mark.parametrize(("ci", "failed"), [("true", 7), ("", 0)])
def test_a_skipped_test_fails_if_ci_is_true(tmp_path: Path, *, ci: str, failed: int) -> None:
    told = counts(tmp_path, "test_all.py", PROJECT, ci)

    assert told["failed"] + told["error"] == failed
    assert told["skipped"] == 8 - failed
    assert told["xfailed"] == 1


@pytest.mark.parametrize(("ci", "word"), [("true", "error"), ("", "skipped")])
def test_a_skipped_module_fails_if_ci_is_true(tmp_path: Path, *, ci: str, word: str) -> None:
    assert counts(tmp_path, "test_module.py", MODULE, ci)[word] == 1


def counts(folder: Path, name: str, text: str, ci: str) -> dict[str, int]:
    """Run a file under the suite's own conftest, without any program; returns the outcomes."""
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = needs\n", encoding="utf-8")
    words = ["-m", "pytest", "-c", str(folder / "pytest.ini"), "-p", "tests.conftest", "-n", "0"]
    done = subprocess.run(
        [sys.executable, *words, "-p", "no:cacheprovider", str(folder / name)],
        cwd=ROOT,
        env={**os.environ, "CI": ci, "PATH": str(folder), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.findall(r"(\d+) (failed|skipped|xfailed|passed|error)", done.stdout)
    return {"failed": 0, "error": 0} | {word: int(number) for number, word in found}
