# SPDX-License-Identifier: MIT
"""The short form of `python -m tests.service.http.fuzz`."""

import httpx2
import pytest

from byrote.service.routes.table import ENDPOINTS
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.service.harness import serving
from tests.service.http.fuzz import LIMITS, fuzz


@pytest.mark.filterwarnings("ignore")  # The tool's own, about itself.
def test_no_request_breaks_the_service_or_its_description(
    address: DatabaseAddress, store: Store
) -> None:
    with serving(address, store, LIMITS) as served:
        seen = fuzz(served, examples=6)

    assert seen.total() > 200
    assert not any(status >= 500 for status in seen)
    assert {200, 201, 404, 422} <= set(seen)


def test_the_description_names_every_route(admin: httpx2.Client) -> None:
    told = admin.get("/openapi.json").json()

    assert told["openapi"] == "3.1.0"
    routes = {(e.method.lower(), e.path) for e in ENDPOINTS} | {("get", "/livez")}
    assert {(m, path) for path, item in told["paths"].items() for m in item} == routes
    names = [item[m]["operationId"] for item in told["paths"].values() for m in item]
    assert len(set(names)) == len(names)
