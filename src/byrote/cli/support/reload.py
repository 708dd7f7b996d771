# SPDX-License-Identifier: MIT
"""Restarts a worker gracefully when code changes.

A parent process only watches files, and imports none of them, so code that cannot be imported does
not end it. The worker is a child that receives SIGTERM, finishes or returns its runs within its
grace, and is replaced by a new one.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import click

from byrote.assembly.settings import Settings

EVERY_S = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
FOREIGN = frozenset({"__pycache__", "node_modules", "site-packages"})
"""Folders without code of the project; hidden ones and virtual environments are left out too."""
LEAVE_S = 20.0
"""How long a worker may take beyond its grace: hooks and hands have up to 15 s to end."""

type Snapshot = dict[Path, int]


def keep_fresh(settings: Settings, files: Callable[[], Iterable[Path]]) -> None:
    """Run this command as a child, restarted when one of the files changes, until a signal."""
    command = [sys.executable, *sys.orig_argv[1:], "--no-reload"]
    watcher = Watcher(command, lambda: snapshot(files()))
    sys.exit(watcher.run(settings.grace.total_seconds() + LEAVE_S))


class Watcher:
    """A child process that is restarted when code changes."""

    def __init__(self, command: Sequence[str], look: Callable[[], Snapshot]) -> None:
        self._command = command
        self._look = look
        self._received: signal.Signals | None = None
        self._wake = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

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
            seen = self._look()
            # Its own group: Ctrl-C in a terminal reaches this process, which passes it on once.
            child = self._child = subprocess.Popen(self._command, process_group=0)  # noqa: S603 -- this process's command line.
            self._watch(child, seen)
            if self._received is not None:
                return end(child, self._received, patience_s)
            click.echo("byrote: code has changed, restarting", err=True)
            end(child, signal.SIGTERM, patience_s)

    def _watch(self, child: "subprocess.Popen[bytes]", seen: Snapshot) -> None:
        """Return when code has changed or a signal has arrived."""
        ended = False
        while self._received is None and seen == self._look():
            if not ended and child.poll() is not None:
                ended = True
                code = child.returncode
                click.echo(f"byrote: the worker ended ({code}); waiting for a change", err=True)
            self._wake.wait(EVERY_S)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._received is not None and self._child is not None:
            # A second one, which the worker answers by returning everything at once.
            self._child.send_signal(number)
        self._received = signal.Signals(number)
        self._wake.set()


def end(child: "subprocess.Popen[bytes]", number: signal.Signals, patience_s: float) -> int:
    """Send a signal to a child and wait for it; kill it after `patience_s`. Returns its code."""
    if child.poll() is None:
        child.send_signal(number)
    try:
        return child.wait(patience_s)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def snapshot(files: Iterable[Path]) -> Snapshot:
    """Modification times of files; those that do not exist are left out."""
    found: Snapshot = {}
    for path in files:
        try:
            found[path] = path.stat().st_mtime_ns
        except OSError:
            continue
    return found


def project_files(app: str) -> Iterator[Path]:
    """Python files of the current folder, of PYTHONPATH, and of the app's top-level package."""
    roots = {Path.cwd()}
    roots.update(Path(entry).absolute() for entry in _python_path() if entry)
    package = app.partition(":")[0].partition(".")[0]
    spec = find_spec(package) if package.isidentifier() else None
    if spec is not None:
        roots.update(Path(folder) for folder in spec.submodule_search_locations or ())
    for root in roots:
        if not any(root != other and root.is_relative_to(other) for other in roots):
            yield from python_files(root)


def _python_path() -> list[str]:
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)


def python_files(root: Path) -> Iterator[Path]:
    """Python files below a folder, without installed packages and hidden folders."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = [
            name
            for name in folders
            if name not in FOREIGN
            and not name.startswith(".")
            and not (here / name / "pyvenv.cfg").exists()
        ]
        yield from (here / name for name in names if name.endswith(".py"))
