# SPDX-License-Identifier: MIT
"""Byrote beside django-tasks-db: one project, one server, one worker command each, in turn."""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench.peers.server import Server, database, running

WORKERS = {
    "byrote": ["byrote", "worker", "--log-level", "warning"],
    "django-tasks-db": ["db_worker", "--no-startup-delay"],
}
DRAIN = {"byrote": "--drain", "django-tasks-db": "--batch"}
GOALS = {"drain_per_s": 8.0, "enqueue_per_s": 1.0}
"""What Byrote's figure must be, as a multiple of the other's."""
LATENCY_MAX_MS = 15.0
PATIENCE_S = 3600.0

type Figures = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.django", description=__doc__)
    parser.add_argument("--tasks", type=int, default=20_000, help="no-op tasks to drain")
    parser.add_argument("--reps", type=int, default=3, help="repetitions, taken in turn")
    parser.add_argument("--url", help="PostgreSQL to use; default: start one (fsync on)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    options = parser.parse_args(arguments)
    # As an exception, so that workers, databases and the server are put away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    samples: dict[str, list[Figures]] = {peer: [] for peer in WORKERS}
    with running(options.url) as server:
        for _ in range(options.reps):
            for peer, taken in samples.items():
                taken.append(measure(server, peer, options.tasks))
                print(f"{peer}: {told(taken[-1])}", file=sys.stderr, flush=True)
        check = {peer: check_ms(server, peer) for peer in ("none", "byrote")}
    figures = {peer: medians(taken) for peer, taken in samples.items()}
    answer = {"figures": figures, "ratios": ratios(samples), "manage.py check, ms": check}
    print(json.dumps(answer, indent=2) if options.json else table(answer))
    return 0


def measure(server: Server, peer: str, count: int) -> Figures:
    """Every figure of one side, in a database of its own."""
    name = f"bench_django_{peer.replace('-', '_')}"
    with database(server, name) as url:
        environ = environment(peer, url)
        manage(environ, "migrate", "--verbosity", "0")
        figures: Figures = phase(environ, "enqueue", min(count // 2, 2_000))
        phase(environ, "fill", count)
        manage(environ, *WORKERS[peer], DRAIN[peer])
        figures |= phase(environ, "drained", count)
        with worker(environ, peer):
            figures |= phase(environ, "latency", 200)
    return figures


def environment(peer: str, url: str) -> dict[str, str]:
    site = {"DJANGO_SETTINGS_MODULE": "bench.django.project.settings"}
    return {**os.environ, **site, "BENCH_PEER": peer, "BENCH_URL": url}


def manage(environ: dict[str, str], *words: str) -> None:
    command = [sys.executable, "-m", "django", *words]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr[-2000:]}")


def phase(environ: dict[str, str], name: str, count: int) -> Figures:
    command = [sys.executable, "-m", "bench.django.phase", name, str(count)]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


@contextmanager
def worker(environ: dict[str, str], peer: str) -> Iterator[None]:
    command = [sys.executable, "-m", "django", *WORKERS[peer]]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def check_ms(server: Server, peer: str) -> float:
    """What `manage.py check` takes, from the start of the process to its end."""
    with database(server, "bench_django_check") as url:
        environ = environment(peer, url)
        taken = []
        for _ in range(7):
            begun = time.perf_counter()
            manage(environ, "check")
            taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken[1:])


def medians(taken: Sequence[Figures]) -> Figures:
    return {name: statistics.median(one[name] for one in taken) for name in taken[0]}


def ratios(samples: dict[str, list[Figures]]) -> Figures:
    """Within a repetition, then the median: the machine's mood hits both sides alike."""
    pairs = list(zip(samples["byrote"], samples["django-tasks-db"], strict=True))
    return {name: statistics.median(o[name] / p[name] for o, p in pairs) for name in GOALS}


def told(figures: Figures) -> str:
    return ", ".join(f"{name} {value:,.1f}" for name, value in figures.items())


def table(answer: dict[str, Any]) -> str:
    ours, theirs = answer["figures"]["byrote"], answer["figures"]["django-tasks-db"]
    lines = ["| figure | Byrote | django-tasks-db | ratio | wanted |", "|---|---|---|---|---|"]
    for name in ours:
        ratio = answer["ratios"].get(name)
        wanted = f"at least {GOALS[name]:g}" if ratio else ""
        if name == "latency_p50_ms":
            wanted = f"under {LATENCY_MAX_MS:g} ms"
        shown = f"{ratio:.1f}" if ratio else ""
        lines.append(f"| {name} | {ours[name]:,.1f} | {theirs[name]:,.1f} | {shown} | {wanted} |")
    check = answer["manage.py check, ms"]
    lines.append(
        f"\n`manage.py check`: {check['none']:.0f} ms without Byrote, {check['byrote']:.0f} with."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
