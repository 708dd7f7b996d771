# SPDX-License-Identifier: MIT
"""Compiled code for the demo's processes: made once, while PostgreSQL is being set up.

Containers often set PYTHONDONTWRITEBYTECODE. Each of the demo's dozen processes would then compile
all of Byrote for itself, which takes longer than what it is there for. So they store it in the
demo's own folder, and it goes with the folder.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

NEVER, WHERE = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"
WANTED = ("byrote.cli.worker", "byrote.assembly.build", "byrote.assembly.hand",
          "byrote.cli.verified")  # fmt: skip
"""What workers, their hands and those who verify import."""


@contextmanager
def shared_code(folder: Path) -> Iterator[None]:
    """Let this process and those it starts store compiled code below a folder, if nowhere else."""
    if not sys.dont_write_bytecode:
        yield
        return
    prefix, names = sys.pycache_prefix, {name: os.environ.get(name) for name in (NEVER, WHERE)}
    os.environ.pop(NEVER, None)
    os.environ[WHERE] = sys.pycache_prefix = str(folder / "compiled")
    sys.dont_write_bytecode = False
    try:
        yield
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = True, prefix
        for name, value in names.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def compile_ahead() -> None:
    """Compile, on a thread of its own, what the demo's processes will import."""
    threading.Thread(target=lambda: list(map(import_module, WANTED)), daemon=True).start()
