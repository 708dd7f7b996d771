# SPDX-License-Identifier: MIT
"""Commands on the bench: shell scripts of any manners, and our own executor."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import pytest

from byrote.assembly.clock import monotonic
from byrote.core.command import Command, Container, Payload
from byrote.executors.commands.pool import CommandOptions, Commands
from tests.programs import require
from tests.tasks import fates
from tests.worker.harness import ROOT

OK = """echo '{"ok": true, "result": 1}' >&3"""


def shell(script: str, **options: Any) -> Command:
    """A command that runs this script; what Byrote adds to the command line is `$1`, `$2`, …"""
    return Command(argv=("/bin/sh", "-c", script, "sh"), **options)


def make_commands(
    plans: Mapping[str, Command] | None = None,
    *,
    app: str = "tests.tasks.fates:app",
    concurrency: int = 10,
    payload: Payload = "stdin",
    **environment: str,
) -> Commands:
    """Commands for these tasks, version 1; every other task goes to our own executor."""
    options = CommandOptions(
        concurrency=concurrency, python=sys.executable, app=app, payload=payload
    )
    made = Commands(
        options,
        worker="w",
        clock=monotonic,
        environment={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    made.learn({"echo@1": Command()} | {f"{name}@1": plan for name, plan in (plans or {}).items()})
    return made


def make_containers() -> Commands:
    """Every task of `fates` in a bubble; the folder for temporary files is shared with it."""
    shared = tempfile.gettempdir()
    bubble = Command(container=Container(mounts=(f"{shared}:{shared}:rw",)))
    return make_commands({task.name: bubble for task in fates.app.registry})


def require_bubbles() -> None:
    """Skip the test where bubblewrap is missing or the kernel grants it no namespaces."""
    require("bwrap")
    words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    tried = subprocess.run(words, capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"namespaces are refused: {tried.stderr.decode().strip()}")
