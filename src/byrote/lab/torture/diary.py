# SPDX-License-Identifier: MIT
"""The observations of every process, outside the database: one file of JSON lines each.

Times are the machine's monotonic clock, which all processes on it share.
"""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

_open: dict[str, int] = {}


def note(folder: str | Path, who: str, what: str, **more: Any) -> None:
    """Write one line that survives a kill of this process the moment it is written."""
    key = f"{folder}/{who}-{os.getpid()}.jsonl"
    if key not in _open:
        _open[key] = os.open(key, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    line = {"t": time.monotonic(), "what": what, **more}
    os.write(_open[key], msgspec.json.encode(line) + b"\n")


def read(folder: Path, who: str = "") -> Iterator[dict[str, Any]]:
    """Every whole line of every process whose name has this prefix, without a torn last line."""
    for path in sorted(folder.glob(f"{who}*.jsonl")):
        yield from lines(path)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole JSON object of a file, one per line; other lines are skipped."""
    with path.open("rb") as file:
        yield from objects(file)


def objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Every whole JSON object among some lines, with their ends."""
    for line in lines:
        if line.startswith(b"{") and line.endswith(b"}\n"):
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
