# SPDX-License-Identifier: MIT
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_public_signatures_are_what_they_were() -> None:
    """`api.py` beside this file pins them; mypy --strict compares."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "tests/typing/api.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )

    assert done.returncode == 0, done.stdout
