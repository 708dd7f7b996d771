# SPDX-License-Identifier: MIT
"""What a claim costs in a crowd: `python -m bench.claims`, on a machine that does nothing else.

For each size a new database with so many rows, five in six of them finished and the rest ready
behind the ones that are claimed. Measured: how long claims of a hundred runs take, and how many
pages one touches. P9 says that neither grows.

Prints one JSON document; `--plot FOLDER` also writes claims.svg there. The last size takes most of
the time and about a gigabyte and a half per million rows.
"""

import argparse
import json
import statistics
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from byrote.lab.bench.progress import BenchProgress

from bench.pressure import plot
from byrote.assembly.clock import monotonic
from byrote.assembly.identity import new_ids, new_token
from byrote.core.spec import Delivery, describe
from byrote.lab.bench.database import SETTINGS, fill, scratch, target, tidy
from byrote.lab.bench.stage import own_folder
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.query import Query
from byrote.store.runners.sync import fetch

BATCH = 100
CLAIMS = 200
SIZES = (0, 10_000, 100_000, 1_000_000, 3_000_000, 6_000_000)
SPEC = describe("bench.noop", 1, [1], {}, delivery=Delivery())
PANELS = (
    ("claim of 100, ms", ("claim_p50_ms", "claim_p99_ms")),
    ("pages a claim touches", ("pages",)),
)


def claim() -> Query[Any]:
    return queries.claim(
        quotas={"default": BATCH}, tasks=["bench.noop@1"], worker="bench", token=new_token(),
        lease_for=timedelta(seconds=60),
    )  # fmt: skip


def pages(db: psycopg.Connection[Any]) -> int:
    """Pages that one claim looks at, found again or read; the claim is taken back."""
    query = claim()
    with db.transaction(force_rollback=True):
        text = b"explain (analyze, buffers, format json) " + query.sql
        [[[found]]] = db.execute(text, query.args).fetchall()
    return int(found["Plan"]["Shared Hit Blocks"] + found["Plan"]["Shared Read Blocks"])


def measure(url: str, rows: int) -> dict[str, Any]:
    done = rows * 5 // 6
    fill(url, ready=rows - done, done=done, progress=BenchProgress())
    with DatabaseAddress(url).open("bench", *PLAN_GUARDS) as db:
        for _ in range(CLAIMS // 10 + 1):
            fetch(db, queries.enqueue([(run_id, SPEC) for run_id in new_ids(10 * BATCH)]))
        tidy(url)
        took = []
        for _ in range(CLAIMS):
            began = monotonic()
            assert len(fetch(db, claim())) == BATCH
            took.append(1e3 * (monotonic() - began))
        sample = {
            "runs": rows,
            "claim_p50_ms": round(statistics.median(took), 2),
            "claim_p99_ms": round(sorted(took)[int(0.99 * CLAIMS)], 2),
            "pages": pages(db),
        }
    sys.stderr.write(f"{json.dumps(sample)}\n")
    return sample


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=SIZES[-1], help="of the largest crowd")
    parser.add_argument("--url", help="a PostgreSQL of yours; one of its own if absent")
    parser.add_argument("--plot", type=Path, help="a folder for claims.svg")
    asked = parser.parse_args()
    samples = []
    with own_folder() as folder, target(asked.url, folder) as server:
        for rows in (size for size in SIZES if size <= asked.rows):
            with scratch(server) as url:
                samples.append(measure(url, rows))
    if asked.plot:
        said = f"0 to {samples[-1]['runs']:,} rows around the ones that are claimed"
        (asked.plot / "claims.svg").write_text(plot(samples, panels=PANELS, said=said))
    print(json.dumps({"settings": SETTINGS, "samples": samples}))


if __name__ == "__main__":
    main()
