# SPDX-License-Identifier: MIT
"""`python -m tests.sim [SEEDS] [FIRST]`: many histories; names the seed of the first bad one."""

import sys

from tests.sim.world import World


def main() -> int:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    crashes = freezes = losses = refused = runs = 0
    for done, seed in enumerate(range(first, first + seeds), start=1):
        world = World(seed)
        found = world.run()
        if found:
            sys.stdout.write(f"seed {seed}: {found}\n")
            return 3
        crashes, freezes = crashes + world.crashes, freezes + world.freezes
        losses, refused = losses + world.losses, refused + world.refused
        runs += len(world.model.rows)
        if done % 1_000 == 0 or done == seeds:
            told = f"{crashes} crashes, {freezes} freezes, {losses} lost, {refused} refused"
            sys.stdout.write(f"{done} histories, {runs} runs, {told}: no promise broken\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
