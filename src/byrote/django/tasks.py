# SPDX-License-Identifier: MIT
"""Byrote's own task in a Django project; workers discover it as they do those of every app."""

from typing import Any

from byrote.django.backend.backend import KNOWN
from byrote.django.backend.task import own_task


@own_task
def verify(context: Any, run_id: str) -> dict[str, Any]:
    """Execute an ended run again in a shadow run, compare, and return the verdict."""
    from byrote.django.worker.verification import verdict_on  # noqa: PLC0415 -- only workers need it.

    return verdict_on(context.task_result.backend, run_id)


KNOWN.add(verify.module_path)
