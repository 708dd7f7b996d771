# SPDX-License-Identifier: MIT
"""Byrote's own figures, asked of `byrote bench` in a process and a database of its own."""

import json
import os
import subprocess
from typing import Any

from bench.peers import environment
from bench.peers.phases import Figures
from bench.peers.process import PeerError
from bench.peers.server import Server, database

_SECONDS = 900
_ONLY = {
    "one": "one",
    "bulk": "bulk",
    "drain": "drain-async,drain-sync,drain-inline",
    "latency": "latency",
}
"""What `byrote bench` is asked for in each of the peers' phases."""
_SHOWN_CHARACTERS = 400

ASYNC, SYNC, INLINE = "byrote", "byrote, sync tasks", "byrote, inline"


def measure(server: Server, phase: str) -> dict[str, Figures]:
    """Run `byrote bench` once for a phase; its figures by row of the table."""
    with database(server, f"peers_byrote_{os.getpid()}") as url:
        # Not synced: whoever started us did that, and an install must not run inside a benchmark.
        command = [environment.uv(), "run", "--no-sync", "byrote", "bench", "--json", "--url", url]
        try:
            done = subprocess.run(
                [*command, "--only", _ONLY[phase]],
                cwd=environment.ROOT,
                env=environment.environ(),
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PeerError(f"byrote bench took more than {_SECONDS} s") from error
    if done.returncode:
        end = done.stderr.strip()[-_SHOWN_CHARACTERS:]
        raise PeerError(f"byrote bench ended with {done.returncode}; stderr: ...{end}")
    return _rows(done.stdout)


def _rows(answer: str) -> dict[str, Figures]:
    try:
        told = json.loads(answer)["figures"]
        rows: dict[str, Figures] = {ASYNC: {}}
        for name in ("one", "bulk"):
            if figure := told.get(f"enqueue_{name}"):
                rows[ASYNC][name] = float(figure["per_s"])
        for row, name in ((ASYNC, "async"), (SYNC, "sync"), (INLINE, "inline")):
            if figure := told.get(f"drain_{name}"):
                rows[row] = _drain(figure)
        if figure := told.get("latency"):
            rows[ASYNC] |= {name: float(figure[f"{name}_ms"]) for name in ("p50", "p95", "p99")}
    except (ValueError, KeyError, TypeError) as error:
        raise PeerError(f"byrote bench answered something else: {error!r}") from error
    return rows


def _drain(told: dict[str, Any]) -> Figures:
    figures = {"drain": float(told["per_s"])}
    for name in ("worker_cpu", "postgres_cpu"):
        # Absent when PostgreSQL runs elsewhere. 1,000 µs per task are 1 s per 1,000 tasks.
        if told.get(f"{name}_us") is not None:
            figures[name] = float(told[f"{name}_us"]) / 1e3
    return figures
