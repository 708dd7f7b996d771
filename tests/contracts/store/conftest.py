# SPDX-License-Identifier: MIT
"""Each store in turn: PostgreSQL, also in a schema of its own, and the service in front of it."""

from collections.abc import Iterator

import pytest

from byrote.sdk.store import ServiceStore
from byrote.sdk.transport.address import ServiceAddress
from byrote.store.connect import DatabaseAddress
from byrote.store.worker import PostgresStore
from tests.contracts.store.parts import Db, Parts
from tests.faults.proxy import HttpProxy, Proxy
from tests.homes import HOSTILE, home_in
from tests.sdk import harness
from tests.sdk.harness import ServiceProcess, new_service_token

module_service = harness.module_service


@pytest.fixture(params=["postgres", "http", "schema", "pooled schema"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which store it is. A pooled one names the schema in its statements, another sets a path."""
    return str(request.param)


@pytest.fixture
def address(kind: str, url: str) -> DatabaseAddress:
    """The address for connections of the test's own, which find the tables of this store."""
    return home_in(url) if "schema" in kind else DatabaseAddress(url)


@pytest.fixture
def parts(kind: str, url: str, db: Db, module_service: ServiceProcess) -> Iterator[Parts]:
    """Each store in turn, behind a proxy that can break its exchanges."""
    if kind == "http":
        proxy: Proxy = HttpProxy(module_service.port)
        address = ServiceAddress(proxy.url, new_service_token(db, "work"))
        made = Parts(ServiceStore(address), "http", proxy)
    else:
        proxy = Proxy(url)
        schema = HOSTILE if "schema" in kind else None
        home = DatabaseAddress(proxy.url, schema=schema, pooled="pooled" in kind)
        made = Parts(PostgresStore(home), "postgres", proxy)
    yield made
    made.close()
