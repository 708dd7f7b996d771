# SPDX-License-Identifier: MIT
"""The SDK in an environment without a database driver."""

import subprocess
import sys
from pathlib import Path

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"psycopg", "psycopg_binary", "starlette", "uvicorn"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
"""


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_of_the_sdk_can_be_imported_without_psycopg(tmp_path: Path) -> None:
    program = """
import importlib, pkgutil
import byrote.sdk
for name in byrote.sdk.__all__:
    getattr(byrote.sdk, name)
for module in pkgutil.iter_modules(byrote.sdk.__path__):
    importlib.import_module(f"byrote.sdk.{module.name}")
import byrote.assembly.hand
print("psycopg" in sys.modules)
"""
    assert run(program, tmp_path) == "False\n"


def test_the_block_of_this_test_works(tmp_path: Path) -> None:
    program = "try:\n    import psycopg\nexcept ModuleNotFoundError:\n    print('blocked')"

    assert run(program, tmp_path) == "blocked\n"


def test_clients_and_workers_can_be_made_without_psycopg(tmp_path: Path) -> None:
    program = """
from byrote.sdk import AsyncClient, Client, Handlers, Worker
handlers = Handlers()
handlers.task(name="t")(lambda: None)
Client("http://127.0.0.1:1")
AsyncClient("http://127.0.0.1:1")
Worker(handlers, "http://127.0.0.1:1", executor="inline")
print("made")
"""
    assert run(program, tmp_path) == "made\n"
