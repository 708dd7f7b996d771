# SPDX-License-Identifier: MIT
"""Each store in turn: PostgreSQL, and the service in front of it."""

from collections.abc import Iterator

import pytest

from byrote.sdk.store import ServiceStore
from byrote.sdk.transport.address import ServiceAddress
from byrote.store.connect import DatabaseAddress
from byrote.store.worker import PostgresStore
from tests.contracts.store.parts import Db, Parts
from tests.faults.proxy import HttpProxy, Proxy
from tests.sdk import harness
from tests.sdk.harness import ServiceProcess, new_service_token

module_service = harness.module_service


@pytest.fixture(params=["postgres", "http"])
def parts(
    request: pytest.FixtureRequest, url: str, db: Db, module_service: ServiceProcess
) -> Iterator[Parts]:
    """Each store in turn, behind a proxy that can break its exchanges."""
    if request.param == "http":
        proxy: Proxy = HttpProxy(module_service.port)
        address = ServiceAddress(proxy.url, new_service_token(db, "work"))
        made = Parts(ServiceStore(address), "http", proxy)
    else:
        proxy = Proxy(url)
        made = Parts(PostgresStore(DatabaseAddress(proxy.url)), "postgres", proxy)
    yield made
    made.close()
