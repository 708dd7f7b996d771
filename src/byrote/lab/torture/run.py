# SPDX-License-Identifier: MIT
"""The nemesis: starts everything, injects faults by the schedule, ends them, and judges."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from byrote.assembly.clock import monotonic
from byrote.core.errors import ByroteError
from byrote.executors.runtime.seeding import Random
from byrote.lab.bench.database import scratch, target
from byrote.lab.bench.stage import StageFailed, own_folder
from byrote.lab.torture import ticks, unserved
from byrote.lab.torture.cluster import dump
from byrote.lab.torture.faults import networks, processes, servers, services
from byrote.lab.torture.faults.processes import Shown
from byrote.lab.torture.faults.zombies import Zombies
from byrote.lab.torture.figures import Recovery, recovered, recoveries
from byrote.lab.torture.judgement import Judgement, gather, judge
from byrote.lab.torture.plan import OWN_SERVER, PlannedFault, dice, schedule
from byrote.lab.torture.stage import TortureSetup
from byrote.store.connect import DatabaseAddress
from byrote.store.verify import VerifyReport, verify

WORKERS = 3
PRODUCERS = 2
RECOVER_S = 10.0
"""How long the next fault waits for the recovery from the last."""
PEACE_S = 120.0
"""How long the runs may take to end once the faults have."""
TRIES = 3
"""How often a fault that did not find a target is tried."""

type FaultFunction = Callable[[TortureSetup, Random], Shown]
type ShowLine = Callable[[str], None]


class Wish(msgspec.Struct, frozen=True):
    """Parameters of a torture."""

    seconds: float
    runs: int
    faults: int
    seed: int
    kinds: tuple[str, ...]
    url: str | None = None
    durable: bool = True
    workers: int = WORKERS
    keep: bool = False
    calm: bool = False
    """No fault and no zombie: then nothing may be executed twice."""

    @property
    def possible(self) -> tuple[str, ...]:
        """The kinds that can be applied to the current server."""
        return tuple(k for k in self.kinds if self.url is None or k not in OWN_SERVER)


class Struck(msgspec.Struct, frozen=True):
    """How often a kind of fault was planned, and how often it really happened."""

    kind: str
    planned: int
    happened: int


class TortureReport(msgspec.Struct, frozen=True):
    """Result of a torture."""

    seed: int
    seconds: float
    faults: list[Struck]
    judged: Judgement
    verified: VerifyReport
    recovery: list[Recovery]
    zombies_forced: int
    zombies_accepted: int
    late_words: int
    """Reports of workers that came too late, besides those forced."""
    unknown: int
    """Enqueues without a response."""
    calm: bool
    folder: str | None

    @property
    def violations(self) -> int:
        """Number of violations seen from inside and from outside the database."""
        return (
            sum(self.verified.counts.values()) + len(self.judged.violations) + self.zombies_accepted
        )


def fault_of(kind: str) -> FaultFunction:
    """The function of a kind of fault; it has the kind's name."""
    for module in (processes, servers, networks, services):
        found = getattr(module, kind, None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise StageFailed(f"Unknown fault {kind!r}.")


def plan_of(wish: Wish) -> list[PlannedFault]:
    """The schedule of a torture; the same parameters, the same schedule."""
    if wish.calm:
        return []
    return schedule(wish.seed, seconds=wish.seconds, faults=wish.faults, kinds=wish.possible)


def torture(wish: Wish, *, show: ShowLine) -> TortureReport:
    """Run a torture and return its report."""
    with own_folder(keep=wish.keep) as folder, _stage(wish, folder) as stage:
        began = monotonic()
        zombies, faults = _strike_all(stage, wish, show, began)
        show("peace: waiting for every run to end")
        _make_peace(stage, wish)
        took = monotonic() - began
        return _judge(stage, wish, zombies, faults=faults, took=took)


@contextlib.contextmanager
def _stage(wish: Wish, folder: Path) -> Iterator[TortureSetup]:
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    with _database(wish.url, folder) as url:
        stage = TortureSetup(folder, seed=wish.seed, url=url, durable=wish.durable, calm=wish.calm)
        try:
            with stage.connect() as connection:
                ticks.begin(connection, stage.history)
                stage.send(*unserved.begin(connection))
            stage.tend(wish.workers)
            stage.producing_until = monotonic() + 0.9 * wish.seconds
            for number in range(PRODUCERS):
                stage.start_producer(number, runs=wish.runs // PRODUCERS)
            yield stage
        finally:
            stage.close()


@contextlib.contextmanager
def _database(url: str | None, folder: Path) -> Iterator[str | None]:
    """A new database on a given server, dropped afterwards; all others are not changed."""
    if url is None:
        yield None
        return
    with target(url, folder) as server, scratch(server) as own:
        yield own


def _strike_all(
    stage: TortureSetup, wish: Wish, show: ShowLine, began: float
) -> tuple[Zombies, list[dict[str, Any]]]:
    zombies = Zombies(stage, dice(wish.seed, "zombies"))
    if not wish.calm:
        zombies.start()
    faults: list[dict[str, Any]] = []
    for planned in plan_of(wish):
        while monotonic() - began < planned.at_s:
            stage.tend(wish.workers)
            time.sleep(min(0.5, max(planned.at_s - (monotonic() - began), 0.01)))
        enough = sum(bool(fault["shown"]) for fault in faults) >= wish.faults
        if monotonic() - began > wish.seconds or (planned.spare and enough):
            break
        faults.append(_strike(stage, planned, show))
        _heal(stage)
        _let_recover(stage, faults[-1])
    while monotonic() - began < wish.seconds:
        stage.tend(wish.workers)
        time.sleep(0.5)
    zombies.stop()
    return zombies, faults


def _strike(stage: TortureSetup, planned: PlannedFault, show: ShowLine) -> dict[str, Any]:
    before = monotonic()
    shown: Shown = None
    error, chosen = None, planned.dice
    for _ in range(TRIES):
        try:
            shown = fault_of(planned.kind)(stage, chosen)
        except (psycopg.Error, OSError, ByroteError) as failure:
            # Two faults may interfere; one that could not be applied is not counted.
            error = f"{type(failure).__name__}: {failure}"[:300]
            _heal(stage)
        if shown:
            break
        time.sleep(1.0)
    entry = {"kind": planned.kind, "number": planned.number, "shown": shown, "error": error}
    stage.note("fault", **entry, took_s=round(monotonic() - before, 3))
    result = "happened" if shown else f"did not happen{f': {error}' if error else ''}"
    show(f"{planned.at_s:7.1f} s  {planned.kind:<18} {result} ({monotonic() - before:.1f} s)")
    return entry


def _let_recover(stage: TortureSetup, fault: Mapping[str, Any]) -> None:
    shown, deadline = fault["shown"], monotonic() + RECOVER_S
    while shown and monotonic() < deadline:
        # The server may still be busy with the last fault.
        with contextlib.suppress(psycopg.Error), stage.connect() as connection:
            if recovered(connection, fault["kind"], shown):
                return
        time.sleep(0.2)


def _heal(stage: TortureSetup) -> None:
    for proxy in stage.proxies:
        proxy.heal()
    if stage.cluster is not None:
        stage.cluster.mend()


def _make_peace(stage: TortureSetup, wish: Wish) -> None:
    """End the faults and the producers, then wait until every run has ended."""
    _heal(stage)
    with stage.connect() as connection:
        ticks.end(connection)
    deadline = monotonic() + PEACE_S
    live = """select count(*) from byrote_task_runs
              where finished_at is null and task_path like 'torture.%'"""
    while monotonic() < deadline:
        stage.tend(wish.workers)
        if not any(producer.alive for producer in stage.producers):
            with stage.connect() as connection:
                row = connection.execute(live).fetchone()
            if row == (0,):
                return
        time.sleep(0.3)


def _judge(
    stage: TortureSetup,
    wish: Wish,
    zombies: Zombies,
    *,
    faults: Sequence[Mapping[str, Any]],
    took: float,
) -> TortureReport:
    # Workers write their last lines when they stop; the server stays for the judgement.
    _stop_workers(stage)
    seen = gather(stage.history, sorted(stage.folder.glob("worker-*.log")))
    verified = verify(DatabaseAddress(stage.url))
    if wish.keep:
        dump(stage.url, stage.folder / "final.sql")
    with stage.connect() as connection:
        judged = judge(connection, seen)
        judged.ticks, wrong = ticks.judge_ticks(connection)
        judged.unserved, more = unserved.judge_unserved(connection)
        judged.violations += [*wrong, *more]
        recovery = recoveries(connection, faults)
    planned = Counter(one.kind for one in plan_of(wish) if not one.spare)
    planned += Counter(fault["kind"] for fault in faults[wish.faults :])
    happened = Counter(fault["kind"] for fault in faults if fault["shown"])
    return TortureReport(
        seed=wish.seed,
        seconds=round(took, 1),
        faults=[Struck(kind, planned[kind], happened[kind]) for kind in sorted(planned)],
        judged=judged,
        verified=verified,
        recovery=recovery,
        zombies_forced=zombies.forced,
        zombies_accepted=zombies.accepted,
        late_words=seen.lost,
        unknown=len(seen.unknown),
        calm=wish.calm,
        folder=str(stage.folder) if wish.keep else None,
    )


def _stop_workers(stage: TortureSetup) -> None:
    stage.ending = True
    for worker in stage.workers:
        worker.popen.terminate()
    for worker in stage.workers:
        worker.wait(15.0)
