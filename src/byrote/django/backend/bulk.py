# SPDX-License-Identifier: MIT
"""Enqueue many tasks at once, or after the commit of another database's transaction."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import batched, groupby
from typing import Any

from django.db import connections, transaction

from byrote.assembly.identity import new_ids
from byrote.core.json.codec import unpack
from byrote.core.ports.script import run_script
from byrote.core.replay.withholding import withholding
from byrote.core.spec import Spec
from byrote.django.backend.backend import Backend
from byrote.django.backend.database import fetch
from byrote.django.backend.result import TaskResult, new_result
from byrote.django.backport import both
from byrote.django.compat import InvalidTask
from byrote.store.bulk import BATCH
from byrote.store.queries.enqueue import accept, until_accepted

type TaskCall = tuple[Any, Sequence[Any], Mapping[str, Any]]
"""A task, its positional arguments, its keyword arguments."""


def enqueue_many(calls: Iterable[TaskCall]) -> list[TaskResult]:
    """Enqueue many calls `(task, args, kwargs)` in order; all or none of each backend's."""
    results: list[TaskResult] = []
    for alias, group in groupby(calls, key=lambda call: call[0].backend):
        batch = list(group)
        backend = batch[0][0].get_backend()
        if not isinstance(backend, Backend):
            raise both(InvalidTask)(
                f"{alias!r} is not a Byrote backend; enqueue its tasks one by one."
            )
        results += _accept(backend, batch)
    return results


def _accept(backend: Backend, calls: Sequence[TaskCall]) -> list[TaskResult]:
    specs: list[Spec] = []
    for task, args, kwargs in calls:
        backend.validate_task(task)
        specs.append(backend.describe(task, args, kwargs))
    if (held := withholding()) is not None:
        return [
            new_result(call[0], backend.alias, run_id, unpack(spec.text))
            for call, spec in zip(calls, specs, strict=True)
            for run_id in held.enqueue(call[0].module_path)
        ]
    numbered = list(zip(new_ids(len(specs)), specs, strict=True))
    results = [
        new_result(call[0], backend.alias, run_id, unpack(spec.text))
        for call, (run_id, spec) in zip(calls, numbered, strict=True)
    ]
    codes = backend.codes_of(call[0] for call in calls)
    moments: list[Any] = []
    instead: dict[str, str] = {}
    with transaction.atomic(using=backend.database):
        for batch in batched(numbered, BATCH):
            script = until_accepted(accept(batch, codes))
            enqueued = run_script(script, partial(fetch, backend.database))
            instead |= enqueued.instead
            moments += [enqueued.at] * len(batch)
    return [
        backend.accepted(result, instead.get(result.id), moment)
        for result, moment in zip(results, moments, strict=True)
    ]


def enqueue_on_commit(task: Any, *args: Any, using: str = "default", **kwargs: Any) -> None:
    """Enqueue when the transaction on database `using` has been committed.

    Use it only for data in another database than the queue: in the same database, `task.enqueue()`
    is part of the transaction, which is safer. Arguments are checked now.
    """
    backend = task.get_backend()
    if isinstance(backend, Backend):
        backend.validate_task(task)
        backend.describe(task, args, kwargs)
    transaction.on_commit(partial(task.enqueue, *args, **kwargs), using=connections[using].alias)
