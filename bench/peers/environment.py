# SPDX-License-Identifier: MIT
"""The peers' own virtual environment: made once, and again when the pins change."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_HOME = ROOT / "bench" / ".peers"
_PINS = Path(__file__).with_name("requirements.txt")
_INSTALLED = _HOME / "installed.txt"
_PYTHON = _HOME / "bin" / "python"
_INSTALL_SECONDS = 600

# What would change how a peer, or libpq below it, behaves.
_FOREIGN = ("PG", "OBAN_", "PGQUEUER_", "PROCRASTINATE_", "PYTHON", "VIRTUAL_ENV")


class SetupError(Exception):
    """The comparison cannot begin; the message says why."""


def python() -> Path:
    """The interpreter of the peers' environment, which is installed first if need be."""
    pins = _PINS.read_text()
    if _INSTALLED.exists() and _INSTALLED.read_text() == pins:
        return _PYTHON
    _uv("venv", "--clear", "--python", sys.executable, str(_HOME))
    _uv("pip", "install", "--python", str(_PYTHON), "-r", str(_PINS))
    _INSTALLED.write_text(pins)
    return _PYTHON


def uv() -> str:
    """Where uv is."""
    found = shutil.which("uv")
    if found is None:
        raise SetupError("uv is not on PATH; it installs the peers and starts Byrote.")
    return found


def environ(**extra: str) -> dict[str, str]:
    """This process's environment without what would configure a peer by accident."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return kept | extra


def _uv(*arguments: str) -> None:
    command = [uv(), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
    )
    if done.returncode:
        raise SetupError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
