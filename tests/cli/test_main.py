# SPDX-License-Identifier: MIT
import os
import subprocess
import sys
from importlib.metadata import version

import click
import psycopg
import pytest

from byrote.cli.errors import describe, exit_code
from byrote.cli.main import installed_version, main
from byrote.core import errors
from tests.cli.console import NOBODY, byrote

MAIN = [sys.executable, "-m", "byrote.cli.main"]


LOADED = """
import atexit, sys
from byrote.cli.main import main
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""


def loaded_by(*words: str) -> set[str]:
    """The modules that are there when a command has ended."""
    said = subprocess.run(
        [sys.executable, "-c", LOADED, *words], check=True, capture_output=True, text=True
    )
    return set(said.stderr.split())


def test_the_version_is_the_installed_one() -> None:
    assert installed_version() == version("byrote")
    assert byrote("--version").out == f"byrote {version('byrote')}\n"


def test_the_version_is_printed_in_under_150_ms() -> None:
    """Of the processor's time, at best: the machine may be busy, the command may not.

    Where Python itself takes a third of that to start, in three times what it takes.
    """

    def seconds(*words: str) -> float:
        with subprocess.Popen([*words], stdout=subprocess.DEVNULL) as process:
            _, code, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(code)
        assert process.returncode == 0
        return used.ru_utime + used.ru_stime

    bare = min(seconds(sys.executable, "-c", "import re, tomllib") for _ in range(5))
    assert min(seconds(*MAIN, "--version") for _ in range(5)) < max(0.150, 3 * bare)


def test_the_version_imports_neither_driver_nor_codec_nor_click() -> None:
    loaded = loaded_by("--version")

    assert "byrote" in loaded
    assert not loaded & {"click", "psycopg", "msgspec", "importlib.metadata"}


def test_the_help_of_the_worker_imports_neither_driver_nor_executors() -> None:
    loaded = loaded_by("worker", "--help")

    assert "byrote.cli.commands.processes.worker" in loaded
    heavy = {"psycopg", "msgspec", "asyncio", "importlib.metadata", "byrote.cli.support"}
    assert not loaded & (heavy | {"byrote.executors", "byrote.worker", "byrote.assembly.worker"})


def test_help_lists_every_command_without_importing_any() -> None:
    loaded = loaded_by("--help")

    assert "byrote.cli.root" in loaded
    assert not loaded & {
        "psycopg",
        "msgspec",
        "byrote.cli.commands.processes.worker",
        "byrote.cli.commands.runs.listing",
    }


def test_help_of_the_worker_imports_neither_driver_nor_codec_nor_executors() -> None:
    loaded = loaded_by("worker", "--help")

    assert "byrote.cli.commands.processes.worker" in loaded
    assert not loaded & {
        "psycopg",
        "msgspec",
        "asyncio",
        "platformdirs",
        "byrote.assembly.worker",
        "byrote.assembly.settings",
        "byrote.executors",
        "byrote.store",
    }


def test_a_command_imports_no_other_command() -> None:
    loaded = loaded_by("queues", "-h")

    assert "byrote.cli.commands.operations.queues" in loaded
    assert not loaded & {
        "byrote.cli.commands.processes.worker",
        "byrote.cli.commands.runs.listing",
        "byrote.cli.commands.checks.doctor",
    }


def test_h_is_help() -> None:
    assert byrote("-h").out == byrote("--help").out
    assert byrote("runs", "list", "-h").out == byrote("runs", "list", "--help").out


def test_an_unknown_command_is_wrong_usage() -> None:
    said = byrote("frobnicate")

    assert said.code == 2
    assert said.err.startswith("Usage: byrote ")
    assert said.err.endswith("byrote: No such command 'frobnicate'.\n")


def test_with_json_an_error_is_one_object_on_standard_error() -> None:
    said = byrote("runs", "show", "frob", "--json")

    assert (said.code, said.out) == (2, "")
    assert said.failure["error"] == "usage"
    assert "not a run id" in said.failure["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "list"),
        ("queues",),
        ("workers",),
        ("migrate",),
        ("migrate", "--check"),
        ("enqueue", "t"),
    ],
    ids=" ".join,
)
def test_a_database_that_is_down_is_75_and_its_address_is_printed(words: tuple[str, ...]) -> None:
    said = byrote(*words, "--json", url=NOBODY)

    assert (said.code, said.out) == (75, "")
    assert said.failure["error"] == "database_unreachable"
    assert "127.0.0.1:1/nothing" in said.failure["message"]


@pytest.mark.parametrize("url", ["mysql://h/d", "postgresql://[h/d"])
def test_a_url_that_cannot_be_read_is_wrong_usage(url: str) -> None:
    said = byrote("runs", "list", "--url", url)

    assert said.code == 2
    assert said.err.startswith("byrote: The database URL ")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BadOption("no"), 2),
        (errors.BadPayload("$", "no"), 2),
        (errors.SchemaMismatch("no"), 3),
        (errors.RunNotFound("x"), 4),
        (errors.UnknownQueue("x", []), 4),
        (errors.RunFailed("x", "FAILED", []), 1),
        (errors.DatabaseUnreachable("no"), 75),
        (psycopg.OperationalError("no"), 75),
        (psycopg.errors.UndefinedTable("no"), 3),
        (psycopg.errors.InsufficientPrivilege("no"), 1),
        (click.UsageError("no"), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code
    assert describe(error).message


def test_native_windows_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sys, "argv", ["byrote", "worker", "app:app"])

    with pytest.raises(SystemExit, match="WSL"):
        main()


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("woker",), "No such command 'woker'. Did you mean 'worker'?"),
        (("xyz",), "No such command 'xyz'."),
    ],
)
def test_an_unknown_command_is_refused_with_the_nearest(
    words: tuple[str, ...], advice: str
) -> None:
    said = byrote(*words)

    assert said.code == 2
    assert said.err.splitlines()[-1] == f"byrote: {advice}"


def test_a_full_disk_is_a_message_and_not_a_traceback() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 -- a device.
        said = subprocess.run(
            [*MAIN, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert said.returncode == 1
    assert said.stderr == "byrote: No space left on the device that it writes to.\n"


def test_roles_prints_sql_with_and_without_the_option() -> None:
    plain = byrote("roles")

    assert plain.code == 0
    assert "create role" in plain.out.lower()
    assert byrote("roles", "--sql").out == plain.out
