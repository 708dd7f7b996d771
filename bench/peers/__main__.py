# SPDX-License-Identifier: MIT
"""Byrote beside its peers, same server, same workloads, repetitions taken in turn."""

import argparse
import functools
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.peers import environment, ours, phases, report
from bench.peers.process import PeerError
from bench.peers.server import running
from bench.peers.workloads import FULL, PEERS, QUICK, Peer
from byrote.core.errors import ByroteError

_MOST_REPETITIONS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    # As an exception, so that workers, databases and the server are put away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        python = environment.python()
        with running(options.url) as server:
            bench = phases.Bench(python, server, QUICK if options.quick else FULL)
            results = _compare(bench, options)
            about = _about(bench, options)
    except (environment.SetupError, ByroteError, psycopg.OperationalError) as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 75
    if options.json:
        print(json.dumps(report.as_data(results, about), indent=2))
    else:
        print(report.as_markdown(results, about))
    missed = any(report.verdict(results, goal) != "met" for goal in report.GOALS)
    return 1 if options.gate and missed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.peers", description=__doc__)
    parser.add_argument("--url", help="PostgreSQL to use; default: start one (fsync on)")
    parser.add_argument("--reps", type=int, help="repetitions; default: 3, with --quick 1")
    parser.add_argument("--quick", action="store_true", help="small numbers, under two minutes")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--gate", action="store_true", help="exit 1 unless every ratio is met")
    names = [peer.name for peer in PEERS]
    parser.add_argument("--against", choices=names, help="leave the other peers out")
    parser.add_argument("--without-byrote", action="store_true", help="measure the peers only")
    options = parser.parse_args(arguments)
    if options.reps is None:
        options.reps = 1 if options.quick else 3
    if not 1 <= options.reps <= _MOST_REPETITIONS:
        parser.error(f"--reps must be between 1 and {_MOST_REPETITIONS}")
    return options


@dataclass(frozen=True)
class _Measurement:
    """One thing to measure in each repetition; it gives figures by row of the table."""

    row: str
    phase: str
    run: Callable[[], dict[str, phases.Figures]]


def _compare(bench: phases.Bench, options: argparse.Namespace) -> report.Results:
    plan = [step for phase in phases.PHASES for step in _phase(bench, options, phase)]
    results = report.Results()
    # In turn, not one after the other: the machine's mood changes within minutes.
    for repetition in range(options.reps):
        for measurement in plan:
            if not results.failed(measurement.row, measurement.phase):
                _take(measurement, results, repetition)
    return results


def _phase(bench: phases.Bench, options: argparse.Namespace, phase: str) -> Iterator[_Measurement]:
    """One workload for everybody: what is compared lies close together."""
    for peer in PEERS:
        if options.against in {None, peer.name}:
            yield _Measurement(peer.name, phase, functools.partial(_of_peer, bench, peer, phase))
    if not options.without_byrote:
        yield _Measurement(ours.ASYNC, phase, lambda: ours.measure(bench.server, phase))


def _of_peer(bench: phases.Bench, peer: Peer, phase: str) -> dict[str, phases.Figures]:
    return {peer.name: phases.PHASES[phase](bench, peer)}


def _take(measurement: _Measurement, results: report.Results, repetition: int) -> None:
    """Measure one thing; a failure is kept beside the figures and the rest goes on."""
    begun = time.monotonic()
    measured: dict[str, phases.Figures] = {measurement.row: {}}
    told = "FAILED"
    try:
        measured = measurement.run()
        told = "; ".join(map(_told, measured.values()))
    except (PeerError, psycopg.Error, OSError, ValueError) as error:
        results.fail(measurement.row, measurement.phase, str(error))
    for row, figures in measured.items():
        results.add(row, repetition, figures)
    name = f"[{repetition + 1}] {measurement.row} {measurement.phase}"
    print(f"{name}: {told} ({time.monotonic() - begun:.1f} s)", file=sys.stderr, flush=True)


def _told(figures: phases.Figures) -> str:
    return " ".join(f"{figure} {value:,.2f}" for figure, value in figures.items())


def _about(bench: phases.Bench, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "repetitions": options.reps,
        "quick": options.quick,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "server": bench.server.settings,
        "peers": {
            peer.name: {
                "version": peer.version,
                "configuration": peer.configuration,
                "backlog": bench.sizes.backlog[peer.name],
            }
            for peer in PEERS
        },
    }


if __name__ == "__main__":
    raise SystemExit(main())
