# SPDX-License-Identifier: MIT
"""Cancel enqueued tasks, and send them signals.

Both are one statement on Django's own connection, so they are part of the caller's transaction.
"""

from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from byrote.assembly.handles import note_withheld
from byrote.assembly.identity import new_id
from byrote.core.errors import BadOption
from byrote.core.json.codec import pack
from byrote.django import compat
from byrote.django.backend.backend import Backend
from byrote.django.backend.database import fetch
from byrote.django.backend.values import plain
from byrote.django.backport import both
from byrote.executors.runtime.steps.call import check_name
from byrote.store import queries
from byrote.store.locks import move


def cancel(result: Any, *, backend: str | None = None) -> bool:
    """Cancel a task; returns False if it had already finished.

    Takes a TaskResult or its id. A task that has not started is FAILED at once, with the error
    `TaskCancelled`; a running one when its worker has stopped it. Raises RowLocked if another
    transaction has locked the run for more than a second.
    """
    if note_withheld("cancel", str(getattr(result, "id", result))):
        return True  # A verified replay changes no other run.
    ours, run_id = _found(result, backend)
    return move(queries.cancel, [run_id], partial(fetch, ours.database)).only is not None


async def acancel(result: Any, *, backend: str | None = None) -> bool:
    """Async version of `cancel`."""
    return await sync_to_async(cancel)(result, backend=backend)


def signal(result: Any, event: str, payload: Any = None, *, backend: str | None = None) -> bool:
    """Send a signal that a task waits for now or later; returns False if it has ended."""
    check_name(event)
    packed = pack(plain(payload))
    if note_withheld("signal", event):
        return True
    ours, run_id = _found(result, backend)
    return bool(fetch(ours.database, queries.signal(run_id, new_id(), event, packed)))


async def asignal(
    result: Any, event: str, payload: Any = None, *, backend: str | None = None
) -> bool:
    """Async version of `signal`."""
    return await sync_to_async(signal)(result, event, payload, backend=backend)


def _found(result: Any, alias: str | None) -> tuple[Backend, str]:
    """Return a result's backend and id; raises TaskResultDoesNotExist for an unknown run."""
    name = alias or getattr(result, "backend", None) or compat.DEFAULT_TASK_BACKEND_ALIAS
    backend = compat.task_backends[name]
    if not isinstance(backend, Backend):
        raise BadOption(f"TASKS[{name!r}] is not a Byrote backend.")
    run_id = str(getattr(result, "id", result))
    run = backend.stored(run_id)
    if run is None or backend.path_of(run.task) is None:
        raise both(compat.TaskResultDoesNotExist)(run_id)
    return backend, run.id
