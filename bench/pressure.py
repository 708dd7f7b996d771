# SPDX-License-Identifier: MIT
"""The store under pressure: `python -m bench.pressure`, on a machine that does nothing else.

One producer keeps a backlog, one consumer claims and finishes with the statements and the watermark
of a real worker, and archiving goes on beside them. Measured every few seconds: the rate, how long
claims took, and how large the hot table and its indexes are.

    warm      at a steady pace, until vacuum has come by a few times
    steady    so many runs at that pace: sizes must stay flat
    calm      as fast as it goes, nothing in the way: the baseline
    pressed   a snapshot is held open all the while, so that vacuum can remove nothing
    after     the snapshot is gone

Says first how long it will take, and on standard error what was met and missed. Prints one JSON
document; `--plot FOLDER` also writes pressure.svg there.
"""

import argparse
import hashlib
import json
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import new_ids, new_token
from byrote.core.ports.replies import Archived
from byrote.core.spec import Delivery, describe
from byrote.lab.bench.database import SETTINGS, scratch, target
from byrote.lab.bench.stage import own_folder
from byrote.store import queries
from byrote.store.connect import PLAN_GUARDS, DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.worker.claiming.watermark import Watermark
from byrote.worker.upkeep.archiver import START, Archiver
from byrote.worker.upkeep.maintenance import ARCHIVE_BUSY_S

BATCH = 200
BACKLOG = 4_000
DAY_S = 86_400
EMPTY_HASH = hashlib.sha256(b"null").hexdigest()
SPEC = describe("bench.noop", 1, [1], {}, delivery=Delivery())
SIZES = """
select pg_table_size('byrote_task_runs'), pg_indexes_size('byrote_task_runs'),
  (select n_dead_tup from pg_stat_user_tables where relname = 'byrote_task_runs')
"""


class Pump:
    """A producer, a consumer and an archivist, each on a thread and a connection."""

    def __init__(self, url: str, pace: float) -> None:
        self.pace: float | None = pace
        """Runs sent a second; None for as many as are worked off."""
        self.done = 0
        self.claims: list[float] = []
        self._address = DatabaseAddress(url, name="bench pressure")
        self._sent = 0
        self._stopped = threading.Event()
        with self._address.open("bench") as db:
            db.execute(
                "insert into byrote_queues (queue_name, archive_after) values ('default', '5s')"
            )
        self._threads = [
            threading.Thread(target=part, daemon=True)
            for part in (self._produce, self._consume, self._archive)
        ]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        began = monotonic()
        with self._address.open("produce") as db:
            while not self._stopped.is_set():
                ahead = self.pace is not None and self._sent > self.pace * (monotonic() - began)
                if ahead or self._sent - self.done > BACKLOG:
                    self._stopped.wait(0.01)
                    continue
                ids = new_ids(BATCH)
                fetch(db, queries.enqueue([(run_id, SPEC) for run_id in ids]))
                self._sent += BATCH

    def _consume(self) -> None:
        mark = Watermark()
        with self._address.open("consume", *PLAN_GUARDS) as db:
            while not self._stopped.is_set():
                began = monotonic()
                floors = mark.floors(began)
                query = queries.claim(
                    quotas={"default": BATCH}, tasks=["bench.noop@1"], worker="bench",
                    token=new_token(), lease_for=timedelta(seconds=60), floors=floors,
                )  # fmt: skip
                leases = fetch(db, query)
                ended = monotonic()
                self.claims.append(ended - began)
                short = len(leases) < BATCH
                mark.note(leases, floors, began=began, ended=ended, short=short)
                verdicts = [
                    {"id": run.id, "token": run.token, "attempt": run.attempt, "verdict": "S",
                     "result": "null", "hash": EMPTY_HASH}
                    for run in leases
                ]  # fmt: skip
                self.done += len(fetch(db, queries.finish(verdicts)))

    def _archive(self) -> None:
        cursor = START
        with self._address.open("archive", "synchronous_commit=off", *PLAN_GUARDS) as db:

            def archive(after: str, limit: int) -> Archived:
                [step] = fetch(db, queries.archive(after=after, limit=limit))
                return step

            archivist = Archiver(archive, monotonic)
            while not self._stopped.wait(1.0):
                cursor = archivist.turn(cursor, patience_s=ARCHIVE_BUSY_S)

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(30)


@contextmanager
def held(url: str) -> Iterator[None]:
    """A snapshot that stays open."""
    with psycopg.connect(url) as db:
        db.execute("set transaction isolation level repeatable read")
        db.execute("select count(*) from byrote_task_runs")
        yield


def watch(
    pump: Pump, db: psycopg.Connection[Any], phase: str, *, seconds: float, runs: int | None = None
) -> Iterator[dict[str, Any]]:
    """A sample every few seconds, until the time is up or so many runs are done."""
    end = time.monotonic() + seconds
    every = max(min(seconds / 20, 10.0), 1.0)
    while time.monotonic() < end and (runs is None or pump.done < runs):
        before, began = pump.done, time.monotonic()
        pump.claims.clear()
        threading.Event().wait(every)
        took = time.monotonic() - began
        claims = sorted(pump.claims)
        table, indexes, dead = db.execute(SIZES).fetchone() or (0, 0, 0)
        sample = {
            "phase": phase,
            "runs": pump.done,
            "per_s": round((pump.done - before) / took, 1),
            "claim_p50_ms": round(statistics.median(claims) * 1e3, 2) if claims else None,
            "claim_p99_ms": round(claims[int(len(claims) * 0.99)] * 1e3, 2) if claims else None,
            "table_mb": round(table / 2**20, 1),
            "index_mb": round(indexes / 2**20, 1),
            "dead": dead,
        }
        sys.stderr.write(f"{json.dumps(sample)}\n")
        yield sample


def summary(samples: list[dict[str, Any]]) -> dict[str, Any]:
    def middle(phase: str, name: str) -> float | None:
        found = [s[name] for s in samples if s["phase"] == phase and s[name] is not None]
        return statistics.median(found) if found else None

    rates = {phase: middle(phase, "per_s") for phase in ("calm", "pressed", "after")}
    p99 = {phase: middle(phase, "claim_p99_ms") for phase in rates}
    calm, pressed = rates["calm"], rates["pressed"]
    flat = [s for s in samples if s["phase"] == "steady"]
    halves = flat[: len(flat) // 2], flat[len(flat) // 2 :]
    sizes = [
        statistics.median(s["table_mb"] + s["index_mb"] for s in h) if h else None for h in halves
    ]
    return {
        "per_s": rates,
        "claim_p99_ms": p99,
        "pressed_of_calm": round(pressed / calm, 3) if calm and pressed else None,
        "size_mb_first_half": sizes[0],
        "size_mb_second_half": sizes[1],
        "steady_per_s": middle("steady", "per_s"),
        "runs": samples[-1]["runs"] if samples else 0,
    }


type Panel = tuple[str, tuple[str, ...]]

WIDTH, HEIGHT, GAP, LEFT = 900, 160, 50, 60
PANELS: Sequence[Panel] = (
    ("runs/s", ("per_s",)),
    ("claim p99, ms", ("claim_p99_ms",)),
    ("table and indexes, MB", ("table_mb", "index_mb")),
)
STYLE = (
    "text{font:13px sans-serif}.frame{fill:none;stroke:#999}.held{fill:#ddd}"
    "polyline{fill:none;stroke-width:1.5}.line0{stroke:#06c}.line1{stroke:#c60}"
)


def plot(
    samples: list[dict[str, Any]],
    *,
    panels: Sequence[Panel] = PANELS,
    said: str | None = None,
) -> str:
    """A curve for each figure over the runs done, or over whatever `runs` counts."""
    parts = [part for row in range(len(panels)) for part in panel(samples, panels[row], row)]
    bottom = len(panels) * (HEIGHT + GAP) + GAP
    said = said or f"0 to {samples[-1]['runs']:,} runs; grey: a snapshot is held"
    parts.append(f'<text x="{LEFT}" y="{bottom - 20}">{said}</text>')
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 100} {bottom}">'
    return f"{opening}<style>{STYLE}</style>{''.join(parts)}</svg>\n"


def panel(samples: list[dict[str, Any]], shown: Panel, row: int) -> Iterator[str]:
    title, names = shown
    top = row * (HEIGHT + GAP) + GAP
    last = samples[-1]["runs"] or 1
    highest = max((s[name] or 0 for s in samples for name in names), default=0) or 1

    def x(sample: dict[str, Any]) -> float:
        return LEFT + WIDTH * sample["runs"] / last

    def y(value: float | None) -> float:
        return top + HEIGHT * (1 - (value or 0) / highest)

    for sample, following in pairwise(samples):
        if sample.get("phase") == "pressed":
            place = f'x="{x(sample):.1f}" width="{x(following) - x(sample):.1f}"'
            yield f'<rect {place} y="{top}" height="{HEIGHT}" class="held"/>'
    yield f'<text x="{LEFT}" y="{top - 8}">{title} (up to {highest:,.0f})</text>'
    yield f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" class="frame"/>'
    for number, name in enumerate(names):
        points = " ".join(f"{x(s):.1f},{y(s[name]):.1f}" for s in samples)
        yield f'<polyline points="{points}" class="line{number}"/>'


def measure(url: str, *, minutes: float, runs: int, pace: float) -> list[dict[str, Any]]:
    held_s = minutes * 60
    warm_s = min(180.0, runs / pace / 2)
    whole_s = warm_s + runs / pace + held_s * (1 / 3 + 1 + 1 / 5)
    sys.stderr.write(f"about {whole_s / 60:.0f} minutes; allow for 2 GiB a minute of disk\n")
    pump = Pump(url, pace)
    with psycopg.connect(url, autocommit=True) as db:
        samples = list(watch(pump, db, "warm", seconds=warm_s))
        samples += watch(pump, db, "steady", seconds=DAY_S, runs=pump.done + runs)
        pump.pace = None
        samples += watch(pump, db, "calm", seconds=held_s / 3)
        with held(url):
            samples += watch(pump, db, "pressed", seconds=held_s)
        samples += watch(pump, db, "after", seconds=held_s / 5)
    pump.stop()
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the snapshot is held")
    parser.add_argument("--runs", type=int, default=2_000_000, help="runs of the steady phase")
    parser.add_argument("--pace", type=float, default=5_000.0, help="runs a second, there")
    parser.add_argument("--url", help="a PostgreSQL of yours; one of its own if absent")
    parser.add_argument("--plot", type=Path, help="a folder for pressure.svg")
    asked = parser.parse_args()
    with own_folder() as folder, target(asked.url, folder) as server, scratch(server) as url:
        samples = measure(url, minutes=asked.minutes, runs=asked.runs, pace=asked.pace)
    if asked.plot:
        (asked.plot / "pressure.svg").write_text(plot(samples))
    told = summary(samples)
    sys.stderr.write("".join(f"{line}\n" for line in verdicts(told)))
    print(json.dumps({"settings": SETTINGS, **told, "samples": samples}))


def verdicts(told: dict[str, Any]) -> Iterator[str]:
    """The figures as sentences, each with what it must be."""

    def judged(said: str, value: float | None, *, good: bool) -> str:
        return f"{'not measured' if value is None else 'met' if good else 'missed'}: {said}"

    held_rate, p99 = told["pressed_of_calm"], told["claim_p99_ms"]
    yield judged(f"{held_rate} of the rate under a held snapshot (0.9)", held_rate,
                 good=(held_rate or 0) >= 0.9)  # fmt: skip
    calm, pressed = p99["calm"], p99["pressed"]
    slower = round(pressed / calm, 2) if calm and pressed else None
    yield judged(f"p99 of a claim {pressed} ms under it, {slower} of {calm} ms (1.11)", slower,
                 good=(slower or 9) <= 1.11)  # fmt: skip
    early, late = told["size_mb_first_half"], told["size_mb_second_half"]
    grown = round(late / early, 3) if early and late else None
    yield judged(f"sizes {early} MB, then {late} MB, {grown} of that (1.1)", grown,
                 good=(grown or 9) <= 1.1)  # fmt: skip


if __name__ == "__main__":
    main()
