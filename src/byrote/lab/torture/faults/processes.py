# SPDX-License-Identifier: MIT
"""Faults of processes: killed, frozen, stopped, replaced, given poison and wrong clocks.

A fault is a function of the stage and its dice. It returns the evidence that it happened, or None
if it did not; then it is not counted.
"""

import contextlib
import os
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from byrote.assembly.clock import monotonic, now
from byrote.core.spec import describe
from byrote.executors.runtime.seeding import Random
from byrote.lab.torture.diary import lines, objects
from byrote.lab.torture.faults import skew
from byrote.lab.torture.producer import ONCE
from byrote.lab.torture.stage import LEASE_S, Process, TortureSetup, delivery
from byrote.lab.torture.tasks import SOON
from byrote.store import queries
from byrote.store.runners.sync import fetch

type Shown = dict[str, Any] | None

FREEZE_S = 2 * LEASE_S
REPORTED_MAX_S = 10.0
"""How long to wait until a worker logs that a hand has ended."""


def kill_worker(stage: TortureSetup, dice: Random) -> Shown:
    """SIGKILL a supervisor that has work, and check that its hands end with it."""
    worker = stage.busy_worker(dice)
    hands, held, at = worker.hands, stage.held_by(worker.name), stage.database_now()
    worker.signal(signal.SIGKILL)
    code = worker.wait(5.0)
    return {"code": code, "worker": worker.name, "runs": held, "at": at, "hands": len(hands)}


def kill_hand(stage: TortureSetup, dice: Random) -> Shown:
    """SIGKILL one hand of a worker that has work."""
    worker = stage.busy_worker(dice)
    hands = worker.hands
    if not hands:
        return None
    pid = dice.choice(hands)
    with worker.log.open("rb") as log:
        log.seek(0, os.SEEK_END)
        killed = monotonic()
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None
        logged_s = _reported(log, pid, since=killed)
    return {"pid": pid, "worker": worker.name, "reported_s": logged_s}


def _reported(log: BinaryIO, pid: int, *, since: float) -> float:
    """Seconds until a worker logged the end of a hand, by this process's clock."""
    read = b""
    while (took := monotonic() - since) < REPORTED_MAX_S:
        read += log.read()
        logged = objects(read.splitlines(keepends=True))
        if any(line.get("event") == "HandEnded" and line.get("pid") == pid for line in logged):
            break
        time.sleep(0.01)
    return took


def _freeze(pids: list[int], seconds: float) -> bool:
    """Stop processes for `seconds`; returns whether they were really stopped."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    stopped = all(_state(pid) in "Tt" for pid in pids if Path(f"/proc/{pid}").exists())
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    return stopped


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "T"


def freeze_worker(stage: TortureSetup, dice: Random) -> Shown:
    """Freeze a supervisor past its leases; its hands continue but cannot report to it."""
    worker = stage.busy_worker(dice)
    held = stage.held_by(worker.name)
    stood = _freeze([worker.pid], FREEZE_S)
    return {"worker": worker.name, "runs": held} if stood else None


def freeze_tree(stage: TortureSetup, dice: Random) -> Shown:
    """Freeze a supervisor and its hands past their leases."""
    worker = stage.busy_worker(dice)
    held = stage.held_by(worker.name)
    stood = _freeze([worker.pid, *worker.hands], FREEZE_S)
    return {"worker": worker.name, "runs": held} if stood else None


def term_worker(stage: TortureSetup, dice: Random) -> Shown:
    """Stop a worker with SIGTERM; it must end with 0 and leave no attempt charged."""
    worker = stage.busy_worker(dice)
    worker.signal(signal.SIGTERM)
    code = worker.wait(10.0)
    return None if code is None else {"code": code, "worker": worker.name}


def term_storm(stage: TortureSetup, dice: Random) -> Shown:
    """Stop every worker in turn, and start another in its place at once."""
    del dice
    codes = []
    for worker in list(stage.workers):
        worker.signal(signal.SIGTERM)
        time.sleep(0.5)
        stage.start_worker(int(worker.name.split("-")[1]))
        codes.append(worker.wait(10.0))
    return {"codes": codes} if codes and None not in codes else None


def term_then_kill(stage: TortureSetup, dice: Random) -> Shown:
    """Kill a worker somewhere in the middle of its shutdown."""
    worker = stage.busy_worker(dice)
    after = dice.uniform(0.0, 1.0)
    worker.signal(signal.SIGTERM)
    time.sleep(after)
    worker.signal(signal.SIGKILL)
    return {"code": worker.wait(5.0), "worker": worker.name, "after_s": round(after, 3)}


def rolling(stage: TortureSetup, dice: Random) -> Shown:
    """Replace workers one by one: half of them do not know one of the tasks."""
    generation = dice.choice(["old", "new"])
    replaced = []
    for worker in list(stage.workers):
        number = int(worker.name.split("-")[1])
        stage.start_worker(number, TORTURE_GENERATION=generation)
        time.sleep(0.5)
        worker.signal(signal.SIGTERM)
        replaced.append(worker.wait(10.0))
        generation = "new" if generation == "old" else "old"
    return {"codes": replaced} if replaced else None


def kill_producer(stage: TortureSetup, dice: Random) -> Shown:
    """Kill a producer; the enqueues it got no response to stay unknown."""
    alive = [producer for producer in stage.producers if producer.alive and stage.left_of(producer)]
    if not alive:
        return None
    victim = dice.choice(alive)
    victim.signal(signal.SIGKILL)
    code = victim.wait(5.0)
    # Another producer sends the rest, so that all requested runs are enqueued.
    left = stage.left_of(victim) or 0
    if left > 0:
        stage.start_producer(dice.randrange(3), runs=left)
    return {"code": code, "producer": victim.name, "left": left}


def clock_skew(stage: TortureSetup, dice: Random) -> Shown:
    """Start a worker whose clock is off by an hour or a day."""
    library = skew.build(stage.folder)
    if library is None:
        return None
    off = dice.choice([-86_400, -3_600, 3_600])
    victim = stage.busy_worker(dice)
    number = int(victim.name.split("-")[1])
    worker = stage.start_worker(number, LD_PRELOAD=str(library), TORTURE_SKEW_S=str(off))
    victim.signal(signal.SIGTERM)
    victim.wait(10.0)
    seen = _skew_of(worker)
    return {"off_s": off, "seen_s": seen} if seen is not None and abs(seen) > 3_000 else None


def _skew_of(worker: Process) -> float | None:
    """How far the clock in a worker's log is from ours."""
    for _ in range(100):
        for line in lines(worker.log):
            if line.get("event") == "WorkerStarted":
                return (datetime.fromisoformat(line["at"]) - now()).total_seconds()
        time.sleep(0.05)
    return None


def poison(stage: TortureSetup, dice: Random) -> Shown:
    """Enqueue tasks that crash every hand that executes one."""
    folder = str(stage.history)
    pill = describe("torture.poison", 1, [folder], {}, delivery=delivery(retry=SOON))
    ids = stage.send(*[pill] * dice.randint(1, 3))
    time.sleep(2.0)
    return {"runs": ids}


def gil(stage: TortureSetup, dice: Random) -> Shown:
    """Enqueue tasks that block their hand for two leases."""
    args = [str(stage.history), 2 * LEASE_S]
    spec = describe("torture.gil", 1, args, {}, delivery=delivery(retry=ONCE))
    ids = stage.send(*[spec] * dice.randint(1, 2))
    time.sleep(2 * LEASE_S)
    return {"runs": ids}


def cancel_storm(stage: TortureSetup, dice: Random) -> Shown:
    """Cancel runs that wait and runs that are under way."""
    done = 0
    with stage.connect() as connection:
        for _ in range(5):
            text = "select result_id::text from byrote_task_runs where finished_at is null limit 50"
            ids = [row[0] for row in connection.execute(text)]
            some = dice.sample(ids, min(3, len(ids)))
            done += len(fetch(connection, queries.cancel(some)))
            time.sleep(0.2)
    return {"cancelled": done} if done else None
