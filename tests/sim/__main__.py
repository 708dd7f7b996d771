# SPDX-License-Identifier: MIT
"""`python -m tests.sim [SEEDS] [FIRST]`: many histories; names the seed of the first bad one."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.sim.world import World

CHUNK = 1_000
TOLD = ("crashes", "freezes", "losses", "refused")


def live(first: int, end: int) -> tuple[Counter[str], str | None]:
    """Some histories, one after the other: what happened in them, and the first that was bad."""
    seen: Counter[str] = Counter()
    for seed in range(first, end):
        world = World(seed)
        found = world.run()
        if found:
            return seen, f"seed {seed}: {found}"
        seen.update({name: getattr(world, name) for name in TOLD})
        seen.update(histories=1, runs=len(world.model.rows))
    return seen, None


def chunks(first: int, end: int) -> Iterator[tuple[Counter[str], str | None]]:
    """All of them, on every core, printed in the order of their seeds."""
    starts = range(first, end, CHUNK)
    ends = (min(start + CHUNK, end) for start in starts)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(live, starts, ends)


def main() -> int:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    whole: Counter[str] = Counter()
    for seen, bad in chunks(first, first + seeds):
        whole += seen
        if bad is not None:
            sys.stdout.write(f"{bad}\n")
            return 3
        told = f"{whole['crashes']} crashes, {whole['freezes']} freezes, {whole['losses']} lost"
        told = f"{whole['runs']} runs, {told}, {whole['refused']} refused"
        sys.stdout.write(f"{whole['histories']} histories, {told}: no promise broken\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
