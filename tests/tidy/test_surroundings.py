# SPDX-License-Identifier: MIT
import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import byrote
from tests.tidy.sources import (
    ROOT,
    SOURCE,
    faults,
    functions,
    name_of,
    parsed,
    python_files,
    tracked,
)

MINE = "test_surroundings.py"
TEXTS = [
    path
    for path in tracked()
    if path.suffix in {".py", ".md", ".toml", ".sql", ".txt", ".yml", ".json", ".mjs", ".lock", ""}
]
# Put together here so that this file does not hold what it looks for.
HOMES = "|".join(["/ro" + "ot/", "/ho" + "me/[a-z]", "/wo" + "rk/", "/Us" + "ers/[a-z]"])
HOSTS = "|".join(
    ["files\\.python" + "hosted", "py" + "pi\\.org/simple", "art" + "ifactory", "nex" + "us\\."]
)
MACHINE = re.compile(rf"(?<![\w./-])(?:{HOMES})|{HOSTS}")


def test_no_file_names_this_machine_or_a_registry() -> None:
    assert len(TEXTS) > 100
    assert faults(TEXTS, lambda path: MACHINE.findall(path.read_text(encoding="utf-8"))) == {}


def test_the_lint_finds_what_it_looks_for() -> None:
    assert MACHINE.search("cd " + "/ro" + "ot/x")
    assert not MACHINE.search("docs/work/page.md and a/root/of")


def test_arrows_point_inward() -> None:
    """import-linter's contracts of pyproject.toml hold."""
    lint = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    if lint is None:
        pytest.skip("import-linter is missing: it is in the group dev")
    done = subprocess.run(
        [lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", byrote.__all__)
def test_every_public_name_promises_something(name: str) -> None:
    public = getattr(byrote, name)
    assert (public.__doc__ or "").strip()
    assert not public.__doc__.startswith(f"{name}(")
    for member, value in vars(public).items():
        if not member.startswith("_") and callable(value):
            assert getattr(value, "__doc__", None), f"{name}.{member}"


def test_public_functions_of_the_source_promise_something() -> None:
    def silent(path: Path) -> list[str]:
        top = [node for node in parsed(path).body if isinstance(node, ast.FunctionDef)]
        return [f.name for f in top if not f.name.startswith("_") and not ast.get_docstring(f)]

    assert faults(python_files("src"), silent) == {}


def test_a_test_is_not_switched_off() -> None:
    marks = {"xfail", "skip"}
    found = [
        f"{name_of(path)}::{function.name}"
        for path in python_files("tests")
        for function in functions(path)
        for mark in function.decorator_list
        if set(re.findall(r"\w+", ast.unparse(mark))) & marks
    ]

    assert found == []


LINK = re.compile(r"tests/[\w/]+\.py(?:(?:::|#)(\w+))?")


def links(text: str) -> set[tuple[str, str]]:
    return {
        (m.group(0).partition("::")[0].partition("#")[0], m.group(1) or "")
        for m in LINK.finditer(text)
    }


def missing(text: str) -> set[str]:
    """Links to tests that are not there."""
    gone = set()
    for file, test in links(text):
        path = ROOT / file
        if not path.is_file() or (test and test not in {f.name for f in functions(path)}):
            gone.add(f"{file}::{test}")
    return gone


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_tests_that_a_page_links_to_exist(page: str) -> None:
    path = ROOT / page
    text = path.read_text(encoding="utf-8") if path.is_file() else ""

    assert missing(text) == set()


def test_every_promise_in_the_readme_links_its_test() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for number in range(1, 10):
        lines = [line for line in text.splitlines() if re.search(rf"\bP{number}\b", line)]
        assert any(links(line) for line in lines), f"P{number}"


def test_a_link_that_leads_nowhere_is_noticed() -> None:
    assert missing("see tests/store/leases/test_fence.py::test_nothing_of_the_sort")
    assert missing("see tests/store/test_no_such_file.py")
    good = "tests/tidy/" + MINE + "::test_a_link_that_leads_nowhere_is_noticed"
    assert not missing(good)


def test_the_package_is_typed() -> None:
    assert (SOURCE / "py.typed").is_file()
