# SPDX-License-Identifier: MIT
"""A moment that has passed is now: it buys no place before runs of a higher priority."""

from datetime import UTC, datetime, timedelta

import pytest

from byrote.assembly.identity import new_id
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.queries.enqueue import enqueue_memo, enqueue_unique
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from tests.support import Db, claim, enqueue, run_of

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("statement", ["enqueue", "enqueue_one", "enqueue_unique", "enqueue_memo"])
def test_a_moment_long_ago_does_not_overtake_a_higher_priority(db: Db, statement: str) -> None:
    low = new_id()
    delivery = Delivery(run_after=LONG_AGO, priority=-100)
    spec = describe("t", 1, [], {}, delivery=delivery)
    asked: dict[str, Query[object]] = {
        "enqueue": queries.enqueue([(low, spec)]),
        "enqueue_one": queries.enqueue_one(low, spec),
        "enqueue_unique": enqueue_unique([(low, spec)]),
        "enqueue_memo": enqueue_memo([(low, spec)], {}),
    }  # type: ignore[dict-item]  # Their rows are not read.
    fetch(db, asked[statement])
    [high] = enqueue(db)
    [depth] = fetch(db, queries.depths())

    assert run_of(db, low).status == "READY"
    assert run_of(db, low).run_after == run_of(db, low).enqueued_at
    assert depth.oldest_ready_s is not None
    assert depth.oldest_ready_s < timedelta(days=1).total_seconds()
    assert [lease.id for lease in claim(db, 2)] == [high, low]
