# SPDX-License-Identifier: MIT
"""Runs `byrote`: in this process where that is enough, else as a separate process."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import click.testing

from byrote.cli.root import root
from tests.support import until

NOBODY = "postgresql://127.0.0.1:1/nothing"
"""A database that is certainly down."""

_CLEAN = ("BYROTE_DATABASE_URL", "DATABASE_URL", "PGHOST", "PGSERVICE", "NO_COLOR")


class Said:
    """What a command answered."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def objects(self) -> list[Any]:
        """Standard output as one JSON object per line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> Any:
        """Standard output as the one JSON object it is."""
        return json.loads(self.out)

    @property
    def failure(self) -> Any:
        """Standard error as the one JSON object it is."""
        return json.loads(self.err)


def byrote(*words: str, url: str | None = None, stdin: str | None = None, **env: str) -> Said:
    """Run a command in this process, on this database."""
    clean: Mapping[str, str | None] = dict.fromkeys(_CLEAN)
    runner = click.testing.CliRunner(env={**clean, "BYROTE_DATABASE_URL": url, **env})
    result = runner.invoke(root, words, input=stdin, prog_name="byrote")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


class Process:
    """`byrote` as a process; what it writes is kept line by line."""

    def __init__(self, *words: str, url: str | None = None, folder: Path, **env: str) -> None:
        own = {name: value for name, value in os.environ.items() if name not in _CLEAN}
        given = {} if url is None else {"BYROTE_DATABASE_URL": url}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "byrote.cli.main", *words],
            cwd=folder,
            env={**own, **given, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self.out: list[str] = []
        self.err: list[str] = []
        pipes = ((self._process.stdout, self.out), (self._process.stderr, self.err))
        self._readers = [
            threading.Thread(target=lines.extend, args=(pipe,), daemon=True)
            for pipe, lines in pipes
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.ended()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def wrote(self, word: str, times: int = 1) -> None:
        """Wait until so many lines with this word have been written."""
        until(lambda: sum(word in line for line in [*self.out, *self.err]) >= times)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ended(self, within: float = 60.0) -> Said:
        """Wait for the end, and return the output."""
        code = self._process.wait(within)
        for reader in self._readers:
            reader.join(within)
        return Said(code, "".join(self.out), "".join(self.err))
