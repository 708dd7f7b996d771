# SPDX-License-Identifier: MIT
"""What only Linux has is used behind `byrote.system` alone, and by commands, which need Linux."""

import ast
import re
from pathlib import Path

from tests.system.mac_like.linux_only import LINUX_ONLY
from tests.tidy.sources import SOURCE, faults, name_of, parsed, python_files

MAY = (SOURCE / "system", SOURCE / "executors" / "commands")
MEASURES_ON_LINUX = {
    "src/byrote/lab/bench/cpu.py",
    "src/byrote/lab/bench/report.py",
    "src/byrote/lab/bench/stage.py",
    "src/byrote/lab/torture/faults/processes.py",
    "src/byrote/lab/torture/stage.py",
}
"""Benchmarks and fault injection that need Linux; this list may only become shorter."""
FOLDERS = re.compile(r"/proc(/|$)|/sys/fs/cgroup")
NAMES = {f"{module}.{name}" for module, names in LINUX_ONLY.items() for name in names}


def linux_only(tree: ast.Module) -> list[str]:
    """Uses of names that macOS lacks, and of paths below /proc and cgroups outside docstrings."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                found += [f"{module}.{name}"] if f"{module}.{name}" in NAMES else []
            case ast.ImportFrom(module=module, names=names):
                taken = [f"{module}.{name.name}" for name in names]
                found += [name for name in taken if name in NAMES]
            case ast.Constant(value=str() as text) if id(node) not in texts:
                found += [text] if FOLDERS.match(text) else []
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str() as name)]):
                found += [name] if any(name in names for names in LINUX_ONLY.values()) else []
    return found


def test_only_the_system_package_uses_what_macos_lacks() -> None:
    paths = [p for p in python_files("src") if not any(p.is_relative_to(may) for may in MAY)]
    assert len(paths) > 300

    found = faults(paths, lambda path: linux_only(parsed(path)))
    assert set(found) - MEASURES_ON_LINUX == set(), found
    assert set(found) >= MEASURES_ON_LINUX, "shorten the list"


def test_the_lint_finds_uses_and_not_words() -> None:
    bad = """
import os, select
from socket import SOCK_CLOEXEC
os.pidfd_open(1)
getattr(os, "memfd_create")
open(f"/proc/{1}/stat")
open("/sys/fs/cgroup/x")
select.epoll()
"""
    good = '''
"""Reads /proc."""
import os
os.pipe()
x = "without a /proc"
y = "/process"
'''
    assert sorted(linux_only(ast.parse(bad))) == [
        "/proc/", "/sys/fs/cgroup/x", "memfd_create", "os.pidfd_open", "select.epoll",
        "socket.SOCK_CLOEXEC",
    ]  # fmt: skip
    assert linux_only(ast.parse(good)) == []


def test_the_lint_finds_what_the_system_package_uses() -> None:
    found = faults(python_files("src/byrote/system"), lambda path: linux_only(parsed(path)))

    assert name_of(Path(SOURCE / "system" / "processes.py")) in found
