# SPDX-License-Identifier: MIT
"""Runs tests of the worker in a Python that lacks the functions that only Linux has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CRASH = "tests/embedded/test_pg_crash.py"
SHORT = (
    "tests/system/test_system.py",
    "tests/worker/test_worker_path.py",
    "tests/worker/test_worker_cancel.py",
    "tests/worker/test_worker_hands.py",
    "tests/executors/shared",
    "tests/embedded/test_pg_server.py::test_the_url_leads_to_our_database",
    f"{CRASH}::test_a_killed_postmaster_is_replaced_with_the_data_intact",
    f"{CRASH}::test_a_postmaster_killed_under_a_starter_that_never_reaps_it_is_replaced",
)
"""A short subset; `make test-mac-like` runs all tests of workers, executors and the server."""
PROMISED = {
    "a worker with hands": "test_runs_of_both_kinds_end_with_their_results[default]",
    "an inline worker": "test_runs_of_both_kinds_end_with_their_results[executor]",
    "a hard timeout": "test_a_hard_timeout_ends_a_stuck_task_only",
    "a crash": "test_a_crash_that_does_not_repeat_is_retried_like_any_failure",
    "a new server": "test_the_url_leads_to_our_database",
    "a killed server": "test_a_killed_postmaster_is_replaced_with_the_data_intact",
}
"""Tests that the short subset must contain, by what they show."""
USES_LINUX = """
import os
def test_eventfd():
    os.close(os.eventfd(0))
"""


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


@pytest.mark.timeout(600)
def test_workers_pass_their_tests_without_the_functions_of_linux() -> None:
    done = _on_a_mac("-m", "pytest", "-n", "0", "-rA", "-p", "no:cacheprovider", *SHORT)

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    lines = done.stdout.splitlines()
    passed = {line.partition("::")[2] for line in lines if line.startswith("PASSED ")}
    assert {what for what, test in PROMISED.items() if test not in passed} == set()


def test_a_test_that_uses_a_function_of_linux_fails_there(tmp_path: Path) -> None:
    path = tmp_path / "test_linux.py"
    path.write_text(USES_LINUX)
    done = _on_a_mac("-m", "pytest", "-n", "0", "-p", "no:cacheprovider", str(path))

    assert done.returncode == 1
    assert "has no attribute 'eventfd'" in done.stdout
