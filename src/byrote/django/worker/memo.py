# SPDX-License-Identifier: MIT
"""The code of tasks with a memo: what the hands of a worker say of it, said here."""

from functools import cache

from byrote.django import compat
from byrote.django.backend.backend import definition_at
from byrote.django.worker.attempt import Attempts
from byrote.executors.runtime.provenance.environment import code_of


@cache
def code_for(alias: str, path: str) -> str | None:
    """The hash by which results of the task at this path are remembered.

    Once per process: its code is what it was when it was imported.
    """
    return code_of(Attempts(compat.task_backends[alias]).task_of(definition_at(path)))
