# SPDX-License-Identifier: MIT
"""Restarts the worker gracefully when code changes.

Django's own reloader would run the worker in a thread and kill the process. Here a parent process
only watches files; the worker is a child that gets SIGTERM, finishes or returns its runs within
its grace, and is replaced by a new one.
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
    """Run this command as a child, restarted when code changes, until a signal stops it."""
    watcher = Watcher([sys.executable, *sys.orig_argv[1:], "--no-reload"])
    patience_s = settings.grace.total_seconds() + 5.0
    sys.exit(watcher.run(patience_s))


class Watcher:
    """A child process that is restarted when code changes."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._received: signal.Signals | None = None
        self._wake = threading.Event()

    def run(self, patience_s: float) -> int:
        """Keep a child running until a signal arrives; returns the child's exit code."""
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            return self._run(patience_s)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run(self, patience_s: float) -> int:
        while True:
            seen = snapshot()
            child = subprocess.Popen(self._command)  # noqa: S603 -- this process's command line.
            while self._received is None and seen == snapshot():
                self._wake.wait(EVERY_S)
            if self._received is not None:
                return end(child, self._received, patience_s)
            click.echo("byrote: code has changed, restarting", err=True)
            end(child, signal.SIGTERM, patience_s)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._received = signal.Signals(number)
        self._wake.set()


SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end(child: "subprocess.Popen[bytes]", number: signal.Signals, patience_s: float) -> int:
    """Send a signal to a child and wait for it; kill it after `patience_s`. Returns its code."""
    if child.poll() is None:
        child.send_signal(number)
    try:
        return child.wait(patience_s)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def snapshot() -> Snapshot:
    """Modification times of the files of the project's code."""
    found: Snapshot = {}
    for path in watched():
        try:
            found[path] = path.stat().st_mtime_ns
        except OSError:
            continue
    return found


def watched() -> Iterator[Path]:
    """Files of all loaded modules, and of all modules of the project's own apps."""
    yield from iter_all_python_module_files()
    for config in apps.get_app_configs():
        if "site-packages" not in config.path:
            yield from Path(config.path).rglob("*.py")
