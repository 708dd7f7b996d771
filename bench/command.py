# SPDX-License-Identifier: MIT
"""What the command executor costs beyond starting a process: `python -m bench.command`.

The same script is started by `subprocess.run`, which is process start and nothing else, and by
Byrote, from the submit to the report; both one at a time, taking turns. The difference of the
medians is what we add: pipes, a warden, and a tree that is certainly gone afterwards. On a busy
machine much of that is waiting for a core; what it costs in processor time shows the work alone.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import new_id, new_token
from byrote.core.command import Command
from byrote.core.outcome import Outcome, Succeeded
from byrote.core.run import Leased
from byrote.core.spec import Delivery, describe
from byrote.executors.commands.pool import CommandOptions, Commands

SCRIPT = """cat > /dev/null; echo '{"ok": true, "result": 1}'"""
SPEC = describe("x", 1, [], {}, delivery=Delivery())


def lease() -> Leased:
    return Leased(
        id=new_id(), queue="default", task="x", version=1, spec_json=SPEC.text, attempt=1,
        charged=0, losses=0, max_attempts=1, timeout_ms=None, retry_json=None, labels_json=None,
        traceparent=None, spec_hash=SPEC.digest, rank=0, age_us=0, as_of_us=0, token=new_token(),
        deadline=monotonic() + 600,
    )  # fmt: skip


class Ours:
    """The executor, one attempt at a time or many."""

    def __init__(self, argv: Sequence[str], concurrency: int) -> None:
        options = CommandOptions(concurrency=concurrency, python=sys.executable, app="nobody:app")
        self._commands = Commands(options, worker="bench", clock=monotonic)
        self._commands.learn({"x@1": Command(argv=tuple(argv))})
        self._left = 0
        self._over = threading.Event()
        self._commands.start(self._take)

    def _take(self, ended: Sequence[tuple[Leased, Outcome]]) -> None:
        assert all(isinstance(outcome, Succeeded) for _, outcome in ended), ended
        self._left -= len(ended)
        if not self._left:
            self._over.set()

    def run(self, count: int = 1) -> None:
        self._left = count
        self._over.clear()
        self._commands.submit([lease() for _ in range(count)])
        self._over.wait()

    @property
    def helper(self) -> int:
        process = self._commands._nest._process  # noqa: SLF001 -- it has no business with anybody else.
        assert process is not None
        return process.pid

    def close(self) -> None:
        self._commands.stop()


def plain(argv: Sequence[str]) -> None:
    subprocess.run(argv, input=SPEC.text.encode(), stdout=subprocess.PIPE, check=True)


def timed(act: Callable[[], None]) -> float:
    before = time.perf_counter()
    act()
    return (time.perf_counter() - before) * 1e3


def cpu_ms() -> float:
    """Processor time of this process and of those it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) * 1e3


def tree_cpu_ms(pid: int) -> float:
    """Processor time of a process, of those it has waited for, and of its children likewise."""
    with Path(f"/proc/{pid}/stat").open("rb") as stat:
        ticks = sum(map(int, stat.read().rpartition(b")")[2].split()[11:15]))
    with Path(f"/proc/{pid}/task/{pid}/children").open("rb") as children:
        below = sum(tree_cpu_ms(int(child)) for child in children.read().split())
    return ticks * 1e3 / os.sysconf("SC_CLK_TCK") + below


def measure_cpu(argv: Sequence[str], rounds: int) -> dict[str, float]:
    before = cpu_ms()
    for _ in range(rounds):
        plain(argv)
    start = cpu_ms() - before
    ours = Ours(argv, 1)
    ours.run()
    before = cpu_ms() + tree_cpu_ms(ours.helper)
    for _ in range(rounds):
        ours.run()
    whole = cpu_ms() + tree_cpu_ms(ours.helper) - before
    ours.close()
    return {
        "process_start_cpu_ms": round(start / rounds, 2),
        "attempt_cpu_ms": round(whole / rounds, 2),
        "overhead_cpu_ms": round((whole - start) / rounds, 2),
    }


def measure(argv: Sequence[str], rounds: int) -> dict[str, float]:
    ours = Ours(argv, 1)
    plain(argv)
    ours.run()
    times = [(timed(lambda: plain(argv)), timed(ours.run)) for _ in range(rounds)]
    ours.close()
    start, whole = (statistics.median(column) for column in zip(*times, strict=True))
    start_best, whole_best = (min(column) for column in zip(*times, strict=True))
    many = Ours(argv, os.cpu_count() or 1)
    rate = rounds / (timed(lambda: many.run(rounds)) / 1e3)
    many.close()
    return {
        "process_start_ms": round(start, 2),
        "attempt_ms": round(whole, 2),
        "overhead_ms": round(whole - start, 2),
        "overhead_at_best_ms": round(whole_best - start_best, 2),
        **measure_cpu(argv, rounds),
        "attempts_per_s": round(rate, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    print(json.dumps({"script": "sh", **measure(["/bin/sh", "-c", SCRIPT], rounds)}))


if __name__ == "__main__":
    main()
