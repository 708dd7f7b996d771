# SPDX-License-Identifier: MIT
from datetime import timedelta
from typing import Any

from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import Db

DAY = timedelta(days=1)


def kept(db: Db) -> dict[str, Any]:
    rows = db.execute("select queue_name, keep_done, keep_dead from byrote_queues")
    return {queue: (done, dead) for queue, done, dead in rows}


def test_the_retention_of_queues_is_set_and_other_settings_stay(db: Db) -> None:
    db.execute("insert into byrote_queues (queue_name, keep_dead) values ('old', '5 days')")

    found = fetch(db, queries.set_retention(["old", "new"], keep_done=7 * DAY))
    assert {(one.queue, one.keep_done) for one in found} == {("old", 7 * DAY), ("new", 7 * DAY)}
    assert kept(db) == {"old": (7 * DAY, 5 * DAY), "new": (7 * DAY, 90 * DAY)}

    fetch(db, queries.set_retention(["new"], keep_dead=2 * DAY))
    assert kept(db) == {"old": (7 * DAY, 5 * DAY), "new": (7 * DAY, 2 * DAY)}
