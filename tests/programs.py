# SPDX-License-Identifier: MIT
"""Programs and packages that some tests need, and what happens where one is missing.

`@pytest.mark.needs("node")` or `require("node")` names a program, `require_package` a package of
Python. Without it the test is skipped, and fails if CI=true: a skip there would pass for a test
that was run. The hooks of `tests/conftest.py` apply this to every skip, whatever its cause, except
for tests that do not apply to this kind of machine (`ELSEWHERE`).
"""

import importlib
import os
import shutil
from types import ModuleType
from typing import Final

import pytest

from byrote.executors.commands.launcher import supported

PACKAGES = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "curl": "curl",
    "node": "nodejs",
    "openssl": "openssl",
}
"""The package of each program, as Debian names it."""

ELSEWHERE: Final = "does not apply here: "
"""How the reason of a skip begins that is right even if CI=true: another user, another Django."""


def require(program: str) -> None:
    """Skip the test where a program is missing; `commands` are tasks executed as processes."""
    if program == "commands":
        if not supported():
            pytest.skip(f"{ELSEWHERE}commands need Linux")
    elif shutil.which(program) is None:
        pytest.skip(f"{program} is missing: apt-get install {PACKAGES[program]}")


def require_package(name: str, how: str) -> ModuleType:
    """Import a package that a test needs; skip the test where it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        pytest.skip(f"{name} is missing: {how}")


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a report of a skip into one of a failure if CI=true."""
    expected = hasattr(report, "wasxfail")
    if report.outcome != "skipped" or expected or os.environ.get("CI") != "true":
        return
    # Of a skip, pytest reports the file, the line and the reason.
    place = report.longrepr
    reason = str(place[2] if isinstance(place, tuple) else place).removeprefix("Skipped: ")
    if not reason.startswith(ELSEWHERE):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, and CI=true forbids it: {reason}"
