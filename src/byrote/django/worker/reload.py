# SPDX-License-Identifier: MIT
"""Starts the worker anew when code changes, gracefully.

Django's own reloader would run the worker in a thread and end the process under it. Here a parent
watches files and does nothing else; the worker is a child that is asked to stop, finishes or gives
back what it runs within its grace, and is followed by a new one.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click
from django.apps import apps
from django.utils.autoreload import iter_all_python_module_files

from byrote.assembly.settings import Settings

EVERY_S = 1.0

type Snapshot = dict[Path, int]


def keep_fresh(settings: Settings) -> None:
    """Run this very command as a child, again and again, until told to stop."""
    watcher = Watcher([sys.executable, *sys.orig_argv[1:], "--no-reload"])
    patience_s = settings.grace.total_seconds() + 5.0
    sys.exit(watcher.run(patience_s))


class Watcher:
    """A child that follows the code."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._told: signal.Signals | None = None
        self._again = threading.Event()

    def run(self, patience_s: float) -> int:
        """Keep a child running; its exit code once we were told to stop."""
        before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        try:
            return self._run(patience_s)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run(self, patience_s: float) -> int:
        while True:
            seen = snapshot()
            child = subprocess.Popen(self._command)  # noqa: S603 -- this very command line.
            while self._told is None and seen == snapshot():
                self._again.wait(EVERY_S)
            if self._told is not None:
                return end(child, self._told, patience_s)
            click.echo("byrote: code has changed, starting anew", err=True)
            end(child, signal.SIGTERM, patience_s)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self._told = signal.Signals(number)
        self._again.set()


SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end(child: "subprocess.Popen[bytes]", word: signal.Signals, patience_s: float) -> int:
    """Ask a child to stop and wait for it; one that does not stop in its grace is ended."""
    if child.poll() is None:
        child.send_signal(word)
    try:
        return child.wait(patience_s)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def snapshot() -> Snapshot:
    """When each file of the project's code was last written."""
    found: Snapshot = {}
    for path in watched():
        try:
            found[path] = path.stat().st_mtime_ns
        except OSError:
            continue
    return found


def watched() -> Iterator[Path]:
    """Every module that is loaded, and every module of the project's own apps."""
    yield from iter_all_python_module_files()
    for config in apps.get_app_configs():
        if "site-packages" not in config.path:
            yield from Path(config.path).rglob("*.py")
