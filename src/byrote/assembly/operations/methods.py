# SPDX-License-Identifier: MIT
"""The operations of `verbs.py` as methods of an app.

Each has a name for callers that wait, and one with `a` in front for coroutines; both run the same
script.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any

from byrote.assembly.operations import bulk, verbs
from byrote.assembly.operations.database import AppDatabase
from byrote.assembly.operations.verbs import Moving, Operation
from byrote.core.ports.script import arun_script, run_script
from byrote.store.locks import amove, move
from byrote.store.query import Query

if TYPE_CHECKING:
    from byrote.store.runners.aio import AsyncStore
    from byrote.store.runners.sync import Store


def perform[Done](operation: Operation[Done], store: "Store") -> Done:
    """Run an operation."""

    def answer(step: Query[Any] | Moving) -> Any:
        if isinstance(step, Moving):
            return move(step.verb, step.ids, store.all)
        return store.all(step)

    return run_script(operation, answer)


async def aperform[Done](operation: Operation[Done], store: "AsyncStore") -> Done:
    """Run an operation on the running event loop."""

    async def answer(step: Query[Any] | Moving) -> Any:
        if isinstance(step, Moving):
            return await amove(step.verb, step.ids, store.all)
        return await store.all(step)

    return await arun_script(operation, answer)


class BlockingMethod[**P, T]:
    """An operation as a method that waits for its result."""

    def __init__(self, make: Callable[P, Operation[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, app: AppDatabase, _owner: type[AppDatabase]) -> Callable[P, T]:
        @wraps(self._make)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return perform(self._make(*args, **kwargs), app.store)

        return method


class AwaitableMethod[**P, T]:
    """An operation as a coroutine method."""

    def __init__(self, make: Callable[P, Operation[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(
        self, app: AppDatabase, _owner: type[AppDatabase]
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(self._make)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await aperform(self._make(*args, **kwargs), app.astore)

        return method


class Operations(AppDatabase):
    """Lists and commands, under the names of the command line."""

    runs = BlockingMethod(verbs.runs)
    aruns = AwaitableMethod(verbs.runs)
    dead = BlockingMethod(verbs.dead)
    adead = AwaitableMethod(verbs.dead)
    queues = BlockingMethod(verbs.queues)
    aqueues = AwaitableMethod(verbs.queues)
    workers = BlockingMethod(verbs.workers)
    aworkers = AwaitableMethod(verbs.workers)
    pause = BlockingMethod(verbs.pause)
    apause = AwaitableMethod(verbs.pause)
    resume = BlockingMethod(verbs.resume)
    aresume = AwaitableMethod(verbs.resume)
    cancel = BlockingMethod(verbs.cancel)
    acancel = AwaitableMethod(verbs.cancel)
    cancel_many = BlockingMethod(verbs.cancel_many)
    acancel_many = AwaitableMethod(verbs.cancel_many)
    retry = BlockingMethod(verbs.retry)
    aretry = AwaitableMethod(verbs.retry)
    retry_many = BlockingMethod(verbs.retry_many)
    aretry_many = AwaitableMethod(verbs.retry_many)
    retry_runs = BlockingMethod(bulk.retry_runs)
    aretry_runs = AwaitableMethod(bulk.retry_runs)
    cancel_runs = BlockingMethod(bulk.cancel_runs)
    acancel_runs = AwaitableMethod(bulk.cancel_runs)
    purge = BlockingMethod(bulk.purge)
    apurge = AwaitableMethod(bulk.purge)
    set_retention = BlockingMethod(bulk.set_retention)
    aset_retention = AwaitableMethod(bulk.set_retention)
    requeue = BlockingMethod(verbs.requeue)
    arequeue = AwaitableMethod(verbs.requeue)
    delete = BlockingMethod(verbs.delete)
    adelete = AwaitableMethod(verbs.delete)
    signal = BlockingMethod(verbs.signal)
    asignal = AwaitableMethod(verbs.signal)
