# SPDX-License-Identifier: MIT
"""A statement is a file, named for its verb; no SQL is assembled from strings.

That each prepares on the migrated schema is seen in tests/store/test_migrate.py.
"""

import ast
from pathlib import Path

import pytest

from byrote.store import rights
from tests.tidy.sources import SOURCE, faults, parsed, python_files

STATEMENTS = sorted((SOURCE / "store" / "sql").rglob("*.sql"))
EXECUTES = {"execute", "executemany", "copy", "stream"}


def assembled(node: ast.expr) -> bool:
    """Whether an expression builds its text out of pieces."""
    match node:
        case ast.JoinedStr():
            return any(isinstance(value, ast.FormattedValue) for value in node.values)
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(attr="format" | "join" | "replace" | "encode", value=of)):
            return node.func.attr != "encode" or assembled(of)  # type: ignore[union-attr]
    return False


def offences(tree: ast.Module) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in EXECUTES
        and node.args
        and assembled(node.args[0])
    ]


def test_no_sql_is_assembled_from_strings() -> None:
    assert faults(python_files("src"), lambda path: offences(parsed(path))) == {}


@pytest.mark.parametrize(
    "text",
    [
        'db.execute(f"select {x}")',
        'db.execute("select " + x)',
        'db.execute("select %s" % x)',
        'db.execute("select {}".format(x))',
        'db.execute(f"select {x}".encode())',
    ],
)
def test_the_lint_finds_what_it_looks_for(text: str) -> None:
    assert offences(ast.parse(text))


def test_the_lint_lets_parameters_pass() -> None:
    assert offences(ast.parse('db.execute("select %s", (x,)); db.execute(query.sql)')) == []


def names_used() -> set[str]:
    """Every statement that some Query names."""
    return {
        node.args[0].value
        for path in python_files("src")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"Query", "statement"}
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


def test_every_statement_is_used_and_every_one_used_exists() -> None:
    assert {path.stem for path in STATEMENTS} == names_used()


def test_every_statement_is_given_to_a_database_role() -> None:
    """That the role may run it is seen in tests/roles/test_statements.py; roles.sql grants it."""
    names = {path.stem for path in STATEMENTS}

    assert set(rights.LEAST) == names
    assert set(rights.READ) < names


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.stem)
def test_a_statement_opens_with_its_promise_in_lowercase(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    code = " ".join(line.partition("--")[0] for line in lines)

    assert lines[0].startswith("-- ")
    assert "SELECT" not in code
    assert "select *\nfrom byrote_" not in path.read_text(encoding="utf-8")
    assert max(map(len, lines)) <= 130
