# SPDX-License-Identifier: MIT
"""Prose is plain English: the words of our old dialect are counted, and the budgets only ever fall.

Counted are docstrings, comments, messages, headers of SQL and pages of documentation, and in tests
also names. Sentences that begin with "What" instead of a noun are counted apart.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT, SOURCE, name_of, parsed, python_files, tracked

DIALECT = re.compile(
    r"""\b(?:
        say | says | said | saying | tell | tells | told | telling | gives | hear | hears | heard
      | nobody | somebody | whoever | whomever | lie | lies | (?:is|are)\ no\ (?!longer\b|more\b)
      | what\ came\ of | what\ became\ of | come\ to\ nothing | of\ its\ own | lets?\ go
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
WHAT = re.compile(
    r"(?:\A|(?<=[.!?:] )|(?<=\n)|(?<=[#*|>-] ))\s*What(?:ever)?\b[^.?!\n]*(?![^.?!\n]*\?)"
)
"""A sentence or line that begins with a clause in place of a noun; questions do not count."""
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
CODE = re.compile(
    r"```.*?```|~~~.*?~~~|`[^`\n]*`|\]\([^)]*\)|^(?: {4}|\t).*$", re.DOTALL | re.MULTILINE
)

BUDGETS = {
    "artifacts": 0.2,
    "assembly": 0.2,
    "cli": 0.3,
    "contrib": 0.2,
    "core": 0.3,
    "demo": 0.2,
    "django": 0.3,
    "embedded": 0.2,
    "executors": 0.2,
    "lab": 0.2,
    "observe": 0.2,
    "sdk": 0.2,
    "service": 0.2,
    "store": 0.4,
    "testing": 0.2,
    "system": 0.2,
    "wire": 0.3,
    "worker": 0.2,
    "docs": 0.4,
    "pages": 0.2,
}
"""Words of the dialect per 1,000, by area. Lower one when its text has become plainer."""

WHAT_MAX = 0.25
"""Sentences that begin with "What", per 1,000 words of source and documentation."""
TESTS_MAX = 1.0
"""Words of the dialect per 1,000 in the tests: docstrings, comments, texts and names of tests."""
NAMES_MAX = 0
"""Tests whose name is in dialect."""


def prose_of(path: Path) -> Iterator[str]:
    """The texts of a file that people read."""
    text = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".py":
            yield from _strings(path)
            yield from _comments(text)
        case ".sql":
            yield from (line.partition("--")[2] for line in text.splitlines() if "--" in line)
        case ".md":
            yield CODE.sub(" ", text)


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield re.sub(r"`[^`\n]*`", " ", node.value)


def _comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield re.sub(r"`[^`]*`", " ", token.string)


def files_of(area: str) -> list[Path]:
    """The files of a package of the source, of the documentation, or of the pages at the top."""
    match area:
        case "docs":
            return [p for p in tracked() if p.suffix == ".md" and p.is_relative_to(ROOT / "docs")]
        case "pages":
            return [p for p in tracked() if p.suffix == ".md" and p.parent == ROOT]
        case _:
            room = SOURCE / area
            sql = [p for p in tracked() if p.suffix == ".sql" and p.is_relative_to(room)]
            return [*python_files(f"src/byrote/{area}"), *sql]


def rate_of(texts: Iterator[str]) -> float:
    """Words of the dialect per 1,000 words."""
    joined = "\n".join(texts)
    return 1000 * len(DIALECT.findall(joined)) / max(len(WORD.findall(joined)), 1)


@pytest.mark.parametrize("area", BUDGETS)
def test_the_prose_of_an_area_stays_within_its_budget(area: str) -> None:
    files = files_of(area)
    rate = rate_of(text for path in files for text in prose_of(path))

    assert files
    assert rate <= BUDGETS[area], worst(files)


def test_sentences_begin_with_a_noun_or_a_verb() -> None:
    texts = "\n".join(
        text for area in BUDGETS for path in files_of(area) for text in prose_of(path)
    )

    assert 1000 * len(WHAT.findall(texts)) / len(WORD.findall(texts)) <= WHAT_MAX


def test_the_prose_of_tests_stays_within_its_budget() -> None:
    files = python_files("tests")
    rate = rate_of(text for path in files for text in (*prose_of(path), *names_of(path)))

    assert rate <= TESTS_MAX, worst(files)


def test_few_names_of_tests_are_in_dialect() -> None:
    names = [name for path in python_files("tests") for name in names_of(path)]

    assert names
    assert len([name for name in names if DIALECT.search(name)]) <= NAMES_MAX


def names_of(path: Path) -> Iterator[str]:
    """The names of a file's tests, as words."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "test_" in node.name[:5]:
            yield node.name.replace("_", " ")


def worst(files: list[Path]) -> list[tuple[int, str]]:
    """The files with most of it."""
    counts = [(len(DIALECT.findall("\n".join(prose_of(path)))), name_of(path)) for path in files]
    return sorted(counts, reverse=True)[:10]


def test_every_room_has_a_budget() -> None:
    rooms = {path.relative_to(SOURCE).parts[0] for path in python_files("src/byrote")}

    assert {room for room in rooms if "." not in room} | {"docs", "pages"} == set(BUDGETS)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It says what it was told.", 2),
        ("A queue is no topic; there is no longer one.", 1),
        ("Returns the rows that the statement wrote.", 0),
    ],
)
def test_the_count_finds_what_it_looks_for(text: str, count: int) -> None:
    assert len(DIALECT.findall(text)) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("What was claimed. Whatever fails is due again.", 2),
        ("What does a worker do? It claims runs.", 0),
        ("Returns what was claimed.", 0),
    ],
)
def test_the_count_of_what_finds_clauses_and_no_questions(text: str, count: int) -> None:
    assert len(WHAT.findall(text)) == count
