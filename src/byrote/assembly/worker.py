# SPDX-License-Identifier: MIT
"""Builds a worker from settings."""

import os
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue

import msgspec

from byrote.assembly.artifacts import default_location
from byrote.assembly.clock import monotonic
from byrote.assembly.executors import build_executor, hands_of, worker_options
from byrote.assembly.identity import jitter, new_token, worker_id
from byrote.assembly.operations.address import address_of
from byrote.assembly.settings import Settings
from byrote.core.errors import BadOption, SchemaMismatch
from byrote.core.ports.executor import Asks, Emit
from byrote.core.ports.replies import UnknownTaskRef
from byrote.embedded.choice import external
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.worker import PostgresStore
from byrote.worker.asks.artifacts import artifact_answers
from byrote.worker.claiming.discovery import DiscoveryHooks
from byrote.worker.context import WorkerContext
from byrote.worker.start_order import OrderedStart
from byrote.worker.worker import Worker


def check_database(settings: Settings) -> None:
    """Check the database that the settings name, before any hand starts: nothing if none is named.

    Raises if it does not answer, refuses the login, or lacks the schema or a right. If only other
    schemas have our tables, the app may name one of them: then its worker checks that one.
    """
    if (url := external(settings.database_url)) is not None:
        address = address_of(settings, url)
        try:
            PostgresStore(address).check()
        except SchemaMismatch:
            if settings.schema is not None or not _schemas(address):
                raise


def _schemas(address: DatabaseAddress) -> list[str]:
    """The schemas of a database that have our tables."""
    with address.open("worker") as connection:
        return fetch(connection, queries.schemas())


def build_worker(
    app: str,
    settings: Settings,
    *,
    emit: Emit,
    drain: bool = False,
    fallback: Callable[[str | None], str] | None = None,
    recognise: Callable[[UnknownTaskRef], bool] | None = None,
) -> Worker:
    """Return a worker for the app at `module:name`; `fallback` opens the embedded server.

    It is called with the URL if that is `embedded` or absent, and returns the server's.

    `recognise` decides whether the hands could execute a task that the app did not register.
    """
    emit = OrderedStart(emit)
    name = settings.worker_id or worker_id()
    hands = hands_of(settings)
    where = settings.artifacts or default_location(os.environ)
    asks: Asks = SimpleQueue()
    built = build_executor(app, settings, name, emit=emit, hands=hands, asks=asks)
    options = msgspec.structs.replace(
        worker_options(settings, name, hands=hands, drain=drain),
        artifacts=where,
        chain_events=settings.chain_events,
    )

    @cache
    def store() -> PostgresStore:
        given = settings.database_url or built.app().url
        found = external(given) or (fallback and fallback(given))
        if not found:
            raise BadOption("No database is set; give --url or set BYROTE_DATABASE_URL.")
        schema = built.app().schema
        address = address_of(settings, found, name=f"byrote {name}", schema=schema)
        return PostgresStore(
            address,
            listen=settings.listen,
            durable_claims=settings.claims == "durable",
            keep_events=settings.keep_events,
            holder=new_token(),
        )

    context = WorkerContext(name, monotonic, jitter, new_token, emit)
    answers = artifact_answers(where, settings.artifact_max)
    pool = built.pool
    return Worker(
        store,
        built.executor,
        options,
        context,
        asks=asks,
        answers=answers,
        on_finished=built.report_finished,
        schedules=lambda: built.app().schedules,
        announced=lambda: built.app().announced,
        unknown_tasks=None
        if pool is None or recognise is None
        else DiscoveryHooks(lambda part: store().unknown_tasks(part), recognise, pool.learn),
    )
