# SPDX-License-Identifier: MIT
"""Builds the queue service: its store, clock and randomness, and its housekeeping threads."""

import contextlib
import os
import platform
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version

from starlette.applications import Starlette

from byrote.assembly.artifacts import default_location
from byrote.assembly.clock import monotonic
from byrote.assembly.identity import jitter, new_ids, new_token, worker_id
from byrote.assembly.operations.address import address_of
from byrote.assembly.settings import Settings, resolve
from byrote.core.errors import BadOption, DatabaseUnreachable
from byrote.core.ports.executor import Emit
from byrote.core.ports.store import PartContext
from byrote.embedded.choice import external
from byrote.service.app import build_app
from byrote.service.options import ServiceContext, ServiceOptions
from byrote.service.service import Service
from byrote.store.connect import DatabaseAddress
from byrote.store.worker import PostgresStore
from byrote.worker.asks.artifacts import ArtifactCleaner
from byrote.worker.context import WorkerContext
from byrote.worker.notices import Notices
from byrote.worker.upkeep.maintenance import Maintenance


def build_service(
    address: DatabaseAddress, options: ServiceOptions, *, emit: Emit = lambda _events: None
) -> Service:
    """Return a service on this database; it is not started."""
    name = f"service-{worker_id()}"[:200]
    context = ServiceContext(
        name=name,
        clock=monotonic,
        jitter=jitter,
        token=new_token,
        ids=new_ids,
        describe=partial(_describe, name),
    )
    beside = partial(_housekeeping, address, name, emit, options.artifacts)
    return Service(address, options, context, beside=beside)


def service_app(settings: Settings | None = None) -> Starlette:
    """Return the ASGI app with settings from files and the environment, for any server."""
    settings = resolve().settings if settings is None else settings
    if (url := external(settings.database_url)) is None:
        raise BadOption("No database is set; set BYROTE_DATABASE_URL to the URL of one.")
    address = address_of(settings, url, name="byrote service")
    options = ServiceOptions(
        payload_max=settings.payload_max,
        artifacts=settings.artifacts or default_location(os.environ),
        artifact_max=settings.artifact_max,
    )
    return build_app(build_service(address, options), version=version("byrote"))


def _describe(name: str, queues: Sequence[str], tasks: Sequence[str]) -> Mapping[str, object]:
    return {
        "worker": name,
        "pid": os.getpid(),
        "hands": 0,
        "concurrency": 0,
        "host": socket.gethostname(),
        "version": version("byrote"),
        "python": platform.python_version(),
        "queues": list(queues),
        "tasks": list(tasks),
        # A service has no tasks itself: workers may take those that it waits for as aliases.
        "aliases": list(tasks),
    }


@contextlib.contextmanager
def _housekeeping(
    address: DatabaseAddress, name: str, emit: Emit, artifacts: str | None
) -> Iterator[None]:
    """Promote, sweep, archive and prune in the service: its workers have no database access."""
    stopped = threading.Event()
    postgres = PostgresStore(address, listen=False)
    context = WorkerContext(name, monotonic, jitter, new_token, emit)
    notice = Notices(name, emit)
    duties = postgres.duties(PartContext("duties", stopped.wait, notice, jitter))
    sweeper = Maintenance(duties, context, idle=lambda: True)
    stops = [sweeper.stop]

    def sweep() -> None:
        # Raised if the service stops while the database does not answer.
        with contextlib.suppress(DatabaseUnreachable):
            sweeper.run()
        duties.close()

    threads = [threading.Thread(target=sweep, name="byrote-duties", daemon=True)]
    if artifacts is not None:
        artifact_rows = postgres.artifact_rows(PartContext("tidy", stopped.wait, notice, jitter))
        tidier = ArtifactCleaner(artifact_rows, context, artifacts)
        stops.append(tidier.stop)
        threads.append(threading.Thread(target=tidier.run, name="byrote-tidier", daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for stop in stops:
            stop()
        for thread in threads:
            thread.join(2)
