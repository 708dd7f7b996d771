# SPDX-License-Identifier: MIT
import gc
from collections.abc import Callable

import psycopg

from byrote import App
from tests.support import Db
from tests.tasks import api


def test_a_worker_that_has_drained_leaves_no_connection_open(
    tasks: App, drain: Callable[[], None], db: Db
) -> None:
    api.add.enqueue(1)
    tasks.close()
    drain()
    left = [
        found.info.get_parameters().get("application_name")
        for found in gc.get_objects()
        if isinstance(found, psycopg.Connection) and not found.closed and found is not db
    ]

    assert left == []
