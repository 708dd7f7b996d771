# SPDX-License-Identifier: MIT
"""Time and chance come through the door: only `assembly/` may take them from the machine."""

import ast

import pytest

from tests.tidy.sources import SOURCE, faults, parsed, python_files

OUTSIDE = [path for path in python_files("src") if not path.is_relative_to(SOURCE / "assembly")]
FORBIDDEN = {
    *["datetime.now", "datetime.utcnow", "datetime.today", "date.today"],
    *["time.time", "time.time_ns", "time.localtime", "time.gmtime"],
    *["uuid.uuid1", "uuid.uuid4", "uuid.uuid7", "os.urandom"],
}
FORBIDDEN_MODULES = {"random", "secrets"}
SEEDED = SOURCE / "executors" / "runtime" / "seeding.py"
"""The one place outside that has generators, every one of them seeded by a spec."""


def dotted(node: ast.expr) -> str:
    """`a.b.c` of an attribute, by its last two parts."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value).rpartition('.')[2]}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def offences(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute() if dotted(node) in FORBIDDEN:
                found.append(f"{node.lineno}: {dotted(node)}")
            case ast.Import(names=names):
                found += [f"import {n.name}" for n in names if n.name in FORBIDDEN_MODULES]
            case ast.ImportFrom(module=module, names=names):
                taken = {f"{module}.{name.name}" for name in names}
                bad = module in FORBIDDEN_MODULES or taken & FORBIDDEN
                found += [f"from {module}"] if bad else []
    return found


def test_time_and_chance_are_handed_in() -> None:
    assert len(OUTSIDE) > 30
    assert faults(OUTSIDE, lambda path: path != SEEDED and offences(parsed(path))) == {}


def unseeded(tree: ast.Module) -> list[str]:
    """Generators made without a seed, and those that cannot have one."""
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    bare = [f"{n.lineno}" for n in made if "Random" in dotted(n.func) and not n.args]
    return bare + [node.attr for node in ast.walk(tree) if dotted_is_system(node)]


def dotted_is_system(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in {"SystemRandom", "urandom"}


def test_what_may_have_generators_seeds_them_all() -> None:
    assert offences(parsed(SEEDED)) == ["import random"]
    assert unseeded(parsed(SEEDED)) == []
    assert unseeded(ast.parse("import random; random.Random(); random.SystemRandom(1)"))


@pytest.mark.parametrize(
    "text",
    [
        "import datetime; datetime.datetime.now()",
        "from datetime import datetime; datetime.now(tz)",
        "import time; x = time.time",
        "from time import time",
        "import random",
        "from random import choice",
        "from uuid import uuid4",
        "import uuid; uuid.uuid4()",
    ],
)
def test_the_lint_finds_what_it_looks_for(text: str) -> None:
    assert offences(ast.parse(text))


def test_the_lint_lets_monotonic_time_pass() -> None:
    assert offences(ast.parse("import time; time.monotonic(); self.clock.now()")) == []
