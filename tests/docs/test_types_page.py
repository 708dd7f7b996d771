# SPDX-License-Identifier: MIT
"""The examples of docs/how-to/types.md do what their comments state."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.test_readme import blocks, byrote

PAGE = "docs/how-to/types.md"


def test_the_examples_print_what_their_comments_state(url: str, tmp_path: Path) -> None:
    tasks, *callers = blocks(PAGE, "python")
    (tmp_path / "orders.py").write_text(tasks, encoding="utf-8")
    worker = byrote("worker", "orders:app", folder=tmp_path, url=url)
    printed = [
        subprocess.run(
            [sys.executable, "-c", caller],
            cwd=tmp_path,
            env={**os.environ, "BYROTE_DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        for caller in callers
    ]
    worker.terminate()
    worker.communicate(timeout=60)

    expected = [caller.rsplit("  # ", 1)[1].strip() for caller in callers]
    assert printed == expected
