# SPDX-License-Identifier: MIT
"""What packages export lazily is what type checkers and editors see."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.tidy.sources import SOURCE, parsed

PACKAGES = {
    "byrote": SOURCE / "__init__.py",
    "byrote.sdk": SOURCE / "sdk" / "__init__.py",
    "byrote.django": SOURCE / "django" / "__init__.py",
    "byrote.testing": SOURCE / "testing" / "__init__.py",
}


def declared(path: Path) -> dict[str, str]:
    """The names below `TYPE_CHECKING` that are exported, and the module of each."""
    [block] = [node for node in parsed(path).body if isinstance(node, ast.If)]
    return {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }


def looked_up(path: Path) -> dict[str, str]:
    """The names that are fetched when first used, and the module of each."""
    [table] = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Dict)]
    homes: dict[str, str] = ast.literal_eval(table)
    return {name: module for module, names in homes.items() for name in names.split()}


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_what_is_exported(package: str) -> None:
    path = PACKAGES[package]

    assert declared(path) == looked_up(path)
    assert import_module(package).__all__ == sorted(declared(path))


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Ap'"):
        _ = import_module(package).Ap


def test_the_package_imports_next_to_nothing() -> None:
    code = "import sys, byrote; print(*(name for name in sys.modules if 'byrote' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["byrote.exports", "byrote"]
