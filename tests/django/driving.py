# SPDX-License-Identifier: MIT
"""Runs `manage.py` of the test project as a separate process."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 90

type Process = subprocess.Popen[str]


def manage(
    shop: Mapping[str, str], *words: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "tests.django.manage", *words],
        cwd=ROOT,
        env={**os.environ, **shop, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


RUNS_LEFT = 5
"""The exit code of a drain that leaves runs that it cannot execute."""


def drain(shop: Mapping[str, str], *words: str, code: int = 0, **environment: str) -> str:
    """Let a worker do what is due; its log."""
    done = manage(shop, "byrote", "worker", "--drain", "--hands", "1", *words, **environment)
    assert done.returncode == code, done.stderr
    return done.stderr


@contextlib.contextmanager
def working(shop: Mapping[str, str], *words: str, **environment: str) -> Iterator[Process]:
    """A worker that runs meanwhile, and is ended if it has not ended itself."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.django.manage", "byrote", "worker", "--hands", "1", *words],
        cwd=ROOT,
        env={**os.environ, **shop, **environment},
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield worker
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
