# SPDX-License-Identifier: MIT
"""One phase of a measurement, in a process of its own, in Django; prints one JSON object."""

import json
import statistics
import sys
import time
from datetime import datetime
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402 -- after setup, like everything of Django.
from django.db import connection, transaction  # noqa: E402

from bench.django.project import tasks  # noqa: E402

TABLES = {"byrote": "byrote_runs", "django-tasks-db": "django_tasks_database_dbtaskresult"}
LOOK_S = 0.005
PATIENCE_S = 600.0


def enqueue(count: int) -> dict[str, float]:
    """Calls per second, each in a transaction of its own, on one connection."""
    for number in range(50):
        tasks.nothing.enqueue(number)
    begun = time.perf_counter()
    for number in range(count):
        tasks.nothing.enqueue(number)
    return {"enqueue_per_s": count / (time.perf_counter() - begun)}


def fill(count: int) -> dict[str, float]:
    """A backlog of exactly so many tasks."""
    with transaction.atomic():
        for number in range(count - waiting()):
            tasks.nothing.enqueue(number)
    with connection.cursor() as cursor:
        cursor.execute("vacuum analyze")
    return {"backlog": waiting()}


def waiting() -> int:
    return int(asked("select count(*) from {} where status = 'READY'")[0])


def drained(count: int) -> dict[str, float]:
    """Tasks per second, from the first start to the last end, as the rows tell."""
    done, first, last = asked(
        "select count(*), min(started_at), max(finished_at) from {} where status = 'SUCCESSFUL'"
    )
    assert done == count, f"{done} of {count} were successful"
    assert isinstance(first, datetime)
    return {"drain_per_s": done / (last - first).total_seconds()}


def asked(text: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(text.format(TABLES[settings.PEER]))
        row: tuple[Any, ...] = cursor.fetchone()
        return row


def latency(count: int) -> dict[str, float]:
    """From the call to the start of the function, with a worker that has nothing else to do."""
    taken = []
    for number in range(count + 5):
        sent = time.time()
        result = tasks.moment.enqueue()
        awaited(result)
        if number >= 5:
            taken.append((result.return_value - sent) * 1000)
        time.sleep(0.015 + 0.004 * (number % 5))
    return {"latency_p50_ms": statistics.median(taken), "latency_max_ms": max(taken)}


def awaited(result: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not result.is_finished:
        assert time.monotonic() < deadline, "no worker executes tasks"
        time.sleep(LOOK_S)
        result.refresh()


PHASES = {"enqueue": enqueue, "fill": fill, "drained": drained, "latency": latency}

if __name__ == "__main__":
    print(json.dumps(PHASES[sys.argv[1]](int(sys.argv[2]))))
