# SPDX-License-Identifier: MIT
"""What the event log costs: `python -m bench.events [ROUNDS] [RUNS]`, on a quiet machine.

Drains and enqueues with the log and without it, by turns; without it the statements are the same
but for what they tell (tests/mutants/silent.py). The promise is less than 15 % of the drain rate.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = "drain-async,bulk"


def measure(*, telling: bool, runs: int) -> dict[str, Any]:
    path = [str(ROOT)] if telling else [str(ROOT / "tests" / "mutants" / "hush"), str(ROOT)]
    words = ["bench", "--json", "--only", FIGURES, "--runs", str(runs)]
    done = subprocess.run(
        [sys.executable, "-m", "byrote.cli.main", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        check=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout)["figures"]
    return figures


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 60_000
    pairs = [
        (measure(telling=True, runs=runs), measure(telling=False, runs=runs)) for _ in range(rounds)
    ]
    for name in pairs[0][0]:
        told, untold = ([pair[side][name]["per_s"] for pair in pairs] for side in (0, 1))
        ratios = [with_log / without for with_log, without in zip(told, untold, strict=True)]
        print(
            f"{name}: {statistics.median(told):,.0f}/s with the log, "
            f"{statistics.median(untold):,.0f}/s without; "
            f"the log costs {1 - statistics.median(ratios):.1%} "
            f"({1 - max(ratios):.1%} to {1 - min(ratios):.1%} in {rounds} rounds)"
        )


if __name__ == "__main__":
    main()
