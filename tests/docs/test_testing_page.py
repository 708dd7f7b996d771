# SPDX-License-Identifier: MIT
"""The files of docs/how-to/testing.md are a project that pytest runs, without Django."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_readme import blocks
from tests.testing.test_plugin import BLOCKS_DJANGO

PAGE = "docs/how-to/testing.md"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The page's blocks, each in the file that its first line names."""
    for block in [*blocks(PAGE, "python"), *blocks(PAGE, "ini")]:
        first, _, text = block.partition("\n")
        (tmp_path / first.removeprefix("# ").strip()).write_text(text, encoding="utf-8")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(BLOCKS_DJANGO, encoding="utf-8")
    return tmp_path


def python(project: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    hidden = ("PYTEST_", "BYROTE_", "DJANGO_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    path = f"{project / 'site'}{os.pathsep}{project}"
    return subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=project,
        env=environ | {"PYTHONPATH": path} | more,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )


def test_the_tests_of_the_page_pass(project: Path, server_url: str) -> None:
    settings = project / "pytest.ini"
    server = f"byrote_database_url = {server_url}\n"
    settings.write_text(settings.read_text(encoding="utf-8") + server, encoding="utf-8")
    done = python(project, "-m", "pytest", "-q")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_the_script_of_the_page_leaves_nothing_behind(project: Path, url: str) -> None:
    for _ in range(2):
        done = python(project, "check_shop.py", TEST_DATABASE_URL=url)

        assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
