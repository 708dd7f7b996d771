# SPDX-License-Identifier: MIT
"""What every store promises of progress."""

from typing import Any

import msgspec
import pytest

from byrote.core.progress import report_of
from byrote.core.run import Leased
from tests.contracts.store.parts import Db, Parts, expire
from tests.support import count, enqueue, run_of


def row(lease: Leased, *said: Any) -> dict[str, Any]:
    return {**msgspec.structs.asdict(report_of(*said)), "id": lease.id, "token": lease.token}


def test_progress_is_written_as_reported(parts: Parts, db: Db) -> None:
    enqueue(db, 2)
    one, two = parts.claim(2)
    heard = parts.ledgers.progress([row(one, 1, 3, "a", {"b": 1}), row(two, 12.5)])
    first, second = run_of(db, one.id).progress, run_of(db, two.id).progress

    assert sorted(heard) == sorted([one.id, two.id])
    assert first is not None
    assert second is not None
    assert (first.done, first.total, first.percent) == (1.0, 3.0, 33.333333)
    assert (first.message, first.data) == ("a", {"b": 1})
    assert (second.done, second.total, second.percent, second.data) == (None, None, 12.5, {})


def test_progress_under_a_lost_lease_is_not_written(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [late] = parts.claim()
    expire(db, run_id)
    parts.claim()

    assert parts.ledgers.progress([row(late, 50)]) == []
    assert count(db, "byrote_progress") == 0


@pytest.mark.parametrize("moment", ["before", "after"])
def test_progress_whose_answer_is_lost_is_sent_again(parts: Parts, db: Db, moment: str) -> None:
    enqueue(db)
    [lease] = parts.claim()
    parts.ledgers.progress([row(lease, 1)])
    fault = parts.break_next("progress", moment)

    assert parts.ledgers.progress([row(lease, 2)]) == [lease.id]
    assert fault.happened.is_set()
    found = run_of(db, lease.id).progress
    assert found is not None
    assert found.percent == 2.0
