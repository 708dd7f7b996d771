# SPDX-License-Identifier: MIT
"""Progress of Django tasks: with a worker, in tests, and without a worker."""

from typing import Any

import pytest

from byrote.django import progress
from byrote.django.test import run_tasks
from tests.django.driving import drain
from tests.django.shop import tasks

type Shop = dict[str, str]


def told(result: Any) -> Any:
    result.refresh()
    return result.run.progress


def test_a_worker_writes_the_progress_of_tasks(shop: Shop) -> None:
    results = [tasks.tell.enqueue(1_000), tasks.atell.enqueue(4)]
    drain(shop)
    counted, threaded = map(told, results)

    assert (counted.percent, counted.done, counted.data) == (100.0, 1_000.0, {"file": "a"})
    assert (threaded.percent, threaded.message) == (100.0, "from a thread")


def test_run_tasks_writes_it_too() -> None:
    result = tasks.tell.enqueue(3)
    assert told(result) is None
    run_tasks()

    assert told(result).done == 3.0


def test_outside_of_an_attempt_it_is_only_checked() -> None:
    progress(1, 2)
    with pytest.raises(ValueError, match="3 of 2"):
        progress(3, 2)
