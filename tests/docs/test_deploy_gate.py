# SPDX-License-Identifier: MIT
"""The gate of the how-to, its CI snippet and its Python are run as a reader would run them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.docs.test_readme import blocks, byrote

PAGE = "docs/how-to/deploy-gate.md"


@pytest.fixture
def shop(url: str, tmp_path: Path) -> Path:
    """A folder with the page's app, and a database in which two of its runs have ended."""
    tasks, _caller = blocks(PAGE, "python")
    (tmp_path / "shop.py").write_text(tasks, encoding="utf-8")
    for call in ('{"cents": 99, "country": "DE"}', '{"cents": 5, "country": "FR"}'):
        byrote("enqueue", "shop.invoice", call, folder=tmp_path, url=url).communicate(timeout=60)
    worker = byrote("worker", "shop:app", "--drain", folder=tmp_path, url=url)
    worker.communicate(timeout=60)
    assert worker.returncode == 0
    return tmp_path


def gate(command: str, shop: Path, url: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a line of the page in a shell where `byrote` is installed."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = os.environ | {"PATH": path, "BYROTE_DATABASE_URL": url} | env
    return subprocess.run(
        ["sh", "-c", command], cwd=shop, env=environ, capture_output=True, text=True, timeout=90,
        check=False,
    )  # fmt: skip


def test_the_gate_passes_for_the_same_code_and_not_for_changed_code(url: str, shop: Path) -> None:
    [command] = blocks(PAGE, "sh")
    before = gate(command, shop, url)
    source = (shop / "shop.py").read_text(encoding="utf-8")
    (shop / "shop.py").write_text(source.replace("// 100", "/ 100"), encoding="utf-8")
    after = gate(command, shop, url)

    assert before.returncode == 0, before.stderr
    assert "2 runs of shop.invoice replayed in" in before.stdout
    assert after.returncode == 3, after.stderr
    assert "~ /tax  18 -> 18.81" in after.stdout
    assert "~ /code/function" in after.stdout


def test_the_ci_snippet_passes_and_leaves_its_report(url: str, shop: Path) -> None:
    [snippet] = blocks(PAGE, "yaml")
    [command] = re.findall(r"^    - (.*)$", snippet, re.MULTILINE)
    [app] = re.findall(r"BYROTE_APP: (.*)", snippet)
    [report] = re.findall(r"junit: (.*)", snippet)
    done = gate(command, shop, url, BYROTE_APP=app)

    assert done.returncode == 0, done.stderr
    suite = ET.parse(shop / report).getroot()  # noqa: S314 -- our own.
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")


def test_the_python_of_the_page_prints_how_many_differ(url: str, shop: Path) -> None:
    _tasks, caller = blocks(PAGE, "python")
    (shop / "gate.py").write_text(f"from shop import app, invoice\n{caller}", encoding="utf-8")
    done = gate(f"{sys.executable} gate.py", shop, url)

    assert done.stdout == "0 of 2 differ\n", done.stderr
