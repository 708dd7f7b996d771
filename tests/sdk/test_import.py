# SPDX-License-Identifier: MIT
"""The SDK in an environment without a database driver."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"psycopg", "psycopg_binary", "starlette", "uvicorn"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

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
import byrote.assembly.hand_main
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


def test_what_needs_the_driver_explains_how_to_install_it(tmp_path: Path) -> None:
    program = """
import byrote
try:
    byrote.App
except ImportError as error:
    print(error)
print(byrote.Retry(attempts=2).attempts)
"""
    said = run(program, tmp_path).splitlines()

    assert said == [
        "byrote.App needs a driver for PostgreSQL; run `pip install 'byrote[postgres]'`.",
        "2",
    ]


def command(tmp_path: Path, *words: str) -> tuple[int, str, str]:
    """The command line without the driver: its exit code, and what it printed."""
    program = f"sys.argv = ['byrote', *{words!r}]\nfrom byrote.cli.main import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_line_itself_needs_no_driver(tmp_path: Path) -> None:
    for words in (["--version"], ["--help"], ["worker", "--help"]):
        code, out, err = command(tmp_path, *words)
        assert (code, err) == (0, "")
        assert out


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("runs", "--help"),
        ("worker", "shop:app"),
        ("migrate", "--help"),
        ("serve", "--help"),
        ("doctor", "--help"),
        ("enqueue", "--help"),
        ("demo", "--keep"),
    ],
)
def test_a_command_that_needs_the_driver_explains_how_to_install_it(
    tmp_path: Path, name: str, word: str
) -> None:
    code, out, err = command(tmp_path, name, word)

    assert (code, out) == (1, "")
    assert err == (
        f"byrote: byrote {name} needs a driver for PostgreSQL; "
        "run `pip install 'byrote[postgres]'`.\n"
    )


def test_what_a_client_installs_has_no_driver() -> None:
    def needed(*extras: str) -> set[str]:
        kept = (
            Requirement(text) for text in metadata.requires("byrote") or () if isinstance(text, str)
        )
        return {
            one.name
            for one in kept
            if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras)
        }

    assert needed() == {"msgspec", "platformdirs", "click"}
    assert needed("client") == needed() | {"httpx2"}
    assert "psycopg" in needed("postgres")
