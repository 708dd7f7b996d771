# SPDX-License-Identifier: MIT
"""On native Windows, apps and clients work, and everything else asks for WSL.

Simulated by `windows_like/sitecustomize.py`, which removes what Windows lacks.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Db, run_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WSL = "not on native Windows"
ENQUEUES = """
import sys
from byrote import App
app = App(sys.argv[1])

@app.task(name="echo")
def echo(value): ...

handle = echo.enqueue(1)
print(handle.id)
"""
CLIENTS = """
from byrote.sdk import AsyncClient, Client, Context, Handlers
Client("http://127.0.0.1:1", token="x")
AsyncClient("http://127.0.0.1:1", token="x")
print("made")
"""


def on_windows(script: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(HERE / "windows_like")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_simulation_is_windows() -> None:
    done = on_windows("import os, sys; print(sys.platform, hasattr(os, 'fork')); import fcntl")

    assert done.stdout.split() == ["win32", "False"]
    assert "ModuleNotFoundError" in done.stderr


def test_an_app_enqueues_on_windows(db: Db, url: str) -> None:
    done = on_windows(ENQUEUES, url)

    assert done.returncode == 0, done.stderr
    assert run_of(db, done.stdout.strip()).task == "echo"


def test_clients_of_the_service_are_made_on_windows() -> None:
    done = on_windows(CLIENTS)

    assert done.stdout == "made\n", done.stderr


@pytest.mark.parametrize(
    "module", ["byrote", "byrote.sdk", "byrote.testing.plugin", "byrote.django.testing.plugin"]
)
def test_what_other_programs_import_can_be_imported_on_windows(module: str) -> None:
    """pytest imports the plugins of every package that is installed."""
    done = on_windows(f"import {module}")

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "script",
    [
        "from byrote.sdk import Worker",
        "from byrote.assembly.worker import build_worker",
        "from byrote.django.worker.command import worker",
        "from byrote.embedded.choice import open_chosen; open_chosen('embedded', environ={})",
    ],
)
def test_workers_and_the_embedded_server_ask_for_wsl(script: str) -> None:
    done = on_windows(script)

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("byrote.core.errors.UnsupportedSystem: "), done.stderr
    assert WSL in last
    assert "https://learn.microsoft.com/windows/wsl" in last


def test_the_command_line_asks_for_wsl() -> None:
    done = on_windows("from byrote.cli.main import main; main()", "worker")

    assert done.returncode == 1
    assert WSL in done.stderr
    assert "Traceback" not in done.stderr
