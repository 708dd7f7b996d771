# SPDX-License-Identifier: MIT
"""A producer as a process: sends runs at a steady rate and records each response.

`python -m byrote.lab.torture.producer` with one JSON argument. An enqueue is `ok` when it was
acknowledged, `fail` when it was refused, and `unknown` without a response.
"""

import sys
import time
from datetime import timedelta
from typing import Any

import msgspec
import psycopg

from byrote.assembly.identity import jitter, new_id
from byrote.core.errors import DatabaseUnreachable
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, Spec, describe
from byrote.executors.runtime.seeding import Random
from byrote.lab.torture.diary import note
from byrote.lab.torture.plan import dice
from byrote.lab.torture.tasks import SOON
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store


class Order(msgspec.Struct, frozen=True):
    """The parameters of a producer."""

    url: str
    folder: str
    name: str
    seed: int
    per_s: float
    runs: int
    batches: tuple[int, ...] = (1, 1, 1, 5)
    """How many are sent at once; one of these each time."""


ONCE = Retry(attempts=2, backoff="fixed", delay_first=timedelta(milliseconds=200))
MIX = (
    ("torture.quick", 60),
    ("torture.work", 15),
    ("torture.block", 8),
    ("torture.flaky", 8),
    ("torture.steps", 6),
    ("torture.newcomer", 3),
)


def spec_of(task: str, folder: str, chosen: Random) -> Spec:
    """One call of a task, with random arguments and delivery."""
    args: list[Any] = [folder, chosen.randrange(1_000_000)]
    if task in {"torture.work", "torture.block"}:
        args[1] = round(chosen.uniform(0.01, 0.8 if task == "torture.work" else 0.1), 3)
    retry = SOON if task in {"torture.flaky", "torture.steps"} else ONCE
    waits = timedelta(seconds=chosen.uniform(0.5, 4.0)) if chosen.random() < 0.1 else None
    return describe(task, 1, args, {}, delivery=Delivery(retry=retry, run_after=waits))


def produce(order: Order) -> None:
    """Send the runs, whatever the state of the database."""
    chosen = dice(order.seed, order.name)
    names, weights = zip(*MIX, strict=True)
    store = Store(
        DatabaseAddress(order.url, name="torture producer"), jitter=jitter, patience_s=20.0
    )
    sent, began = 0, time.monotonic()
    while sent < order.runs:
        number = min(chosen.choice(order.batches), order.runs - sent)
        specs = [
            (new_id(), spec_of(task, order.folder, chosen))
            for task in chosen.choices(names, weights, k=number)
        ]
        _send(store, order, specs)
        sent += number
        ahead = began + sent / order.per_s - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)


def _send(store: Store, order: Order, specs: list[tuple[str, Spec]]) -> None:
    ids = [run_id for run_id, _ in specs]
    note(order.folder, order.name, "enqueue", ids=ids)
    try:
        store.accept(specs)
    except DatabaseUnreachable as error:
        note(order.folder, order.name, "unknown", ids=ids, error=str(error)[:200])
    except psycopg.Error as error:
        # Refused by a server that answered: only the classes that Byrote does not retry.
        note(order.folder, order.name, "fail", ids=ids, error=str(error)[:200])
    else:
        note(order.folder, order.name, "ok", ids=ids)


if __name__ == "__main__":
    produce(msgspec.json.decode(sys.argv[1], type=Order))
