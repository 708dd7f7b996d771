# SPDX-License-Identifier: MIT
import time

from django.tasks import task


@task
def nothing(number: int) -> None:
    """A task that costs nothing, so that only the queue is measured."""


@task
def moment() -> float:
    """When it is executed."""
    return time.time()
