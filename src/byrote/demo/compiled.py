# SPDX-License-Identifier: MIT
"""Compiled code for the demo's processes: made once, by a process that does nothing else.

It works while PostgreSQL is being set up. Containers often set PYTHONDONTWRITEBYTECODE; each of the
demo's dozen processes would then compile all of Byrote for itself, which takes longer than its
actual work. So they share compiled files in the demo's own folder; these are deleted with it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NEVER, WHERE = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"
WANTED = (
    "byrote.cli.root, byrote.cli.support.worker_process, byrote.assembly.hand_main, "
    "byrote.cli.output.replay_verdicts"
)
"""Modules that workers, their hands and the verifying commands import."""


@contextmanager
def compiling(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that compiles the modules the demo's processes need, and then ends.

    Where Python must not store compiled code, the demo's processes find it below the folder.
    """
    with _stored_below(folder):
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(  # noqa: S603 -- our own modules.
            [sys.executable, "-c", f"import {WANTED}"], stdin=quiet, stdout=quiet, stderr=quiet
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@contextmanager
def _stored_below(folder: Path) -> Iterator[None]:
    if NEVER not in os.environ:
        yield
        return
    before = {name: os.environ.pop(name, None) for name in (NEVER, WHERE)}
    os.environ[WHERE] = str(folder / "compiled")
    try:
        yield
    finally:
        del os.environ[WHERE]
        os.environ |= {name: value for name, value in before.items() if value is not None}
