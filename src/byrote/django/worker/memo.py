# SPDX-License-Identifier: MIT
"""Code hashes of tasks with a memo, computed as the hands of a worker do."""

from functools import cache

from byrote.django import compat
from byrote.django.backend.backend import definition_at
from byrote.django.worker.attempt import Attempts
from byrote.executors.runtime.provenance.environment import code_of


@cache
def code_for(alias: str, path: str) -> str | None:
    """The code hash under which results of the task at this path are stored.

    Computed once per process: the code does not change after its import.
    """
    return code_of(Attempts(compat.task_backends[alias]).task_of(definition_at(path)))
