# SPDX-License-Identifier: MIT
"""Runs tests of the worker in a Python that lacks the functions that only Linux has."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SHORT = (
    "tests/system/test_system.py",
    "tests/worker/test_worker_path.py",
    "tests/worker/test_worker_cancel.py",
    "tests/worker/test_worker_hands.py",
    "tests/executors/shared",
)
"""A short subset; `make test-mac-like` runs the whole suites of the worker and the executors."""


def _on_a_mac(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(HERE / "mac_like")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_simulation_has_no_function_of_linux() -> None:
    text = "import os, pathlib; print(hasattr(os, 'eventfd'), pathlib.Path('/proc/self').exists())"
    done = _on_a_mac("-c", text)

    assert done.stdout.split() == ["False", "False"], done.stderr


def test_workers_pass_their_tests_without_the_functions_of_linux() -> None:
    done = _on_a_mac("-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *SHORT)

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
