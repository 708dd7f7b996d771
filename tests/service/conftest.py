# SPDX-License-Identifier: MIT
from collections.abc import Iterator

import httpx2
import pytest

from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import Store
from tests.service.harness import Served, serving


@pytest.fixture
def served(address: DatabaseAddress, store: Store) -> Iterator[Served]:
    with serving(address, store) as running:
        yield running


@pytest.fixture
def admin(served: Served) -> Iterator[httpx2.Client]:
    with served.client() as client:
        yield client
