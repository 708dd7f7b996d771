# SPDX-License-Identifier: MIT
"""Memory of an idle worker, and the time to start: `python -m bench.footprint`.

Prints one JSON object:

- `import_s`: `python -c "import byrote; byrote.App"`, from exec to exit.
- `help_s`: `byrote worker --help`, the same.
- `first_task_s`: from the exec of `byrote worker` with two hands to the first line of a task whose
  run was already in the queue.
- `pss_mb`: proportional set size (`/proc/*/smaps_rollup`) of the same worker once it is idle, its
  hands included, in 10^6 bytes; `pss_each_mb` has the supervisor first.

Times are the least of all rounds (`--rounds`) and their median; `_cpu_s` is processor time, which a
busy machine changes least. The first round fills the caches and is not counted.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.footprint_app import app, began
from byrote.lab.bench import database
from byrote.lab.bench.stage import environment, own_folder
from byrote.store import queries

APP = "bench.footprint_app:app"
HANDS = 2
PATIENCE_S = 60.0


def timed(argv: list[str]) -> tuple[float, float]:
    """Run a program to its end; wall and processor seconds."""
    began = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"{argv} exited with code {process.returncode}.")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime


def pss_bytes(pid: int) -> int:
    """Proportional set size of a process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def children_of(pid: int) -> list[int]:
    """Child processes of all threads of a process."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            found += map(int, (thread / "children").read_text().split())
    return sorted(found)


def until(fact: Any, what: str) -> Any:
    """The first true answer of `fact`."""
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        if answer := fact():
            return answer
        time.sleep(0.02)
    raise SystemExit(f"No {what} in {PATIENCE_S:g} s.")


def one_start(url: str) -> tuple[float, list[int]]:
    """Seconds to the first line of a queued task, and the PSS of supervisor and hands when idle."""
    store = app.store
    run = began.enqueue()
    argv = [_byrote(), "worker", APP, "--hands", str(HANDS)]
    started = time.monotonic_ns()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(argv, env=environment(url, {}), stdout=log, stderr=log)
        try:
            result = run.result(timeout=PATIENCE_S)
            until(lambda: len(children_of(process.pid)) >= HANDS, "hands")
            until(lambda: any(w.idle for w in store.all(queries.workers())), "idle worker")
            until(lambda: _settled(process.pid), "steady memory")
            sizes = [pss_bytes(pid) for pid in (process.pid, *children_of(process.pid))]
        finally:
            process.terminate()
            process.wait()
    return (result - started) / 1e9, sizes


def _settled(pid: int) -> bool:
    """Whether no process of the worker has used the processor for half a second."""
    before = _cpu(pid)
    time.sleep(0.5)
    return _cpu(pid) - before <= 1


def _cpu(pid: int) -> int:
    ticks = 0
    for each in (pid, *children_of(pid)):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks


def _byrote() -> str:
    return str(Path(sys.executable).with_name("byrote"))


def measure(url: str, rounds: int) -> dict[str, Any]:
    """All figures."""
    programs = {
        "import": [sys.executable, "-c", "import byrote; byrote.App"],
        "help": [_byrote(), "worker", "--help"],
    }
    figures: dict[str, Any] = {"rounds": rounds}
    for name, argv in programs.items():
        took = [timed(argv) for _ in range(rounds + 1)][1:]
        figures |= _times(f"{name}_s", [wall for wall, _ in took])
        figures[f"{name}_cpu_s"] = round(min(cpu for _, cpu in took), 3)
    app.url = url
    app.migrate()
    starts = [one_start(url) for _ in range(rounds + 1)][1:]
    figures |= _times("first_task_s", [seconds for seconds, _ in starts])
    sizes = min((sizes for _, sizes in starts), key=sum)
    figures["pss_mb"] = round(sum(sizes) / 1e6, 1)
    figures["pss_each_mb"] = [round(size / 1e6, 1) for size in sizes]
    return figures


def _times(name: str, seconds: list[float]) -> dict[str, float]:
    return {
        name: round(min(seconds), 3),
        f"{name}_median": round(statistics.median(seconds), 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Memory and starting time of a worker.")
    parser.add_argument("--url", help="a PostgreSQL server where this user may create databases")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with (
        own_folder() as folder,
        database.target(asked.url, folder) as server,
        database.scratch(server) as url,
    ):
        figures = measure(url, asked.rounds)
        app.close()
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
