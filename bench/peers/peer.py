# SPDX-License-Identifier: MIT
"""One process of one peer, run in the peers' own environment: a producer or a worker.

It speaks in lines: it says `ready` on stdout, waits for a line on stdin, and a producer ends with
one line of JSON. When stdin closes a worker is gone at once, so none outlives the harness.
"""

import argparse
import asyncio
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.peers.ledger import open_ledger
from bench.peers.workloads import WARM_UP

URL_VARIABLE = "BENCH_PEERS_URL"


async def _released() -> None:
    print("ready", flush=True)
    line = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise SystemExit("The harness went away.")


def _leave_with_harness() -> None:
    sys.stdin.read()
    os._exit(0)


async def _one(peer: Any, url: str, options: argparse.Namespace) -> dict[str, Any]:
    async with peer.producer(url) as producer:
        for number in range(WARM_UP):
            await producer.one(number)
        begun = time.monotonic_ns()
        for number in range(options.count):
            await producer.one(number)
        return {"ns": time.monotonic_ns() - begun}


async def _bulk(peer: Any, url: str, options: argparse.Namespace) -> dict[str, Any]:
    async with peer.producer(url) as producer:
        await producer.many(range(WARM_UP))
        begun = time.monotonic_ns()
        for first in range(0, options.count, options.batch):
            await producer.many(range(first, min(first + options.batch, options.count)))
        return {"ns": time.monotonic_ns() - begun}


async def _latency(peer: Any, url: str, options: argparse.Namespace) -> dict[str, Any]:
    calls = []
    async with peer.producer(url) as producer:
        await _released()
        for number in range(WARM_UP + options.count):
            if number == WARM_UP:
                await _released()
            # Pauses of 15 to 31 ms, never in step with anybody's timer.
            await asyncio.sleep(0.015 + (number * 7 % 17) / 1000)
            calls.append(time.monotonic_ns())
            await producer.one(number)
    return {"calls": calls}


async def _produce(peer: Any, url: str, options: argparse.Namespace) -> None:
    await peer.install(url)
    action = {"one": _one, "bulk": _bulk, "latency": _latency}[options.action]
    print(json.dumps(await action(peer, url, options)), flush=True)


async def _work(peer: Any, url: str, options: argparse.Namespace) -> None:
    async def released() -> None:
        await _released()
        threading.Thread(target=_leave_with_harness, daemon=True).start()

    with open_ledger(options.ledger) as ledger:
        await peer.work(url, ledger.stamp if options.stamp else ledger.tick, released)


def _run(peer: Any, job: Callable[[], Awaitable[None]]) -> None:
    if peer.UVLOOP:
        importlib.import_module("uvloop").run(job())
    else:
        asyncio.run(job())  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("peer")
    parser.add_argument("action", choices=["one", "bulk", "latency", "work"])
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--ledger", type=Path)
    parser.add_argument("--stamp", action="store_true")
    options = parser.parse_args()
    url = os.environ[URL_VARIABLE]
    peer = importlib.import_module(f"bench.peers.with_{options.peer}")
    act = _work if options.action == "work" else _produce
    _run(peer, lambda: act(peer, url, options))


if __name__ == "__main__":
    main()
