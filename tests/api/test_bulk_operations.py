# SPDX-License-Identifier: MIT
"""Commands of an app on all runs that match filters."""

import asyncio
from datetime import datetime

import pytest

from byrote import App
from byrote.core.errors import BadOption, UnknownQueue
from tests.cli.runs.test_bulk import fail, statuses
from tests.support import Db, enqueue


def test_runs_are_retried_cancelled_and_purged_by_filter(db: Db, url: str) -> None:
    dead, other = fail(db, 2), enqueue(db, 2, queue="mail", task="mail")
    db.execute("insert into byrote_queues (queue_name) values ('mail')")
    with App(url) as app:
        assert sorted(app.retry_runs(task="t", since="1h")) == sorted(dead)
        assert sorted(app.cancel_runs(task="t", status="ready")) == sorted(dead)
        assert sorted(app.purge("mail")) == sorted(other)
        assert app.purge("mail") == []

    assert statuses(db, [*dead, *other]) == {"CANCELLED"}


def test_the_coroutines_do_the_same(db: Db, url: str) -> None:
    db.execute("insert into byrote_queues (queue_name) values ('default')")
    dead = fail(db, 2)

    async def act() -> None:
        async with App(url) as app:
            assert sorted(await app.aretry_runs(queue="default")) == sorted(dead)
            assert sorted(await app.acancel_runs(queue="default")) == sorted(dead)
            assert await app.apurge("default") == []
            assert (await app.aset_retention("default", keep_dead="1d")).keep_dead.days == 1

    asyncio.run(act())
    assert statuses(db, dead) == {"CANCELLED"}


def test_a_wrong_filter_is_refused_with_its_reason(db: Db, url: str) -> None:
    enqueue(db)
    with App(url) as app:
        with pytest.raises(BadOption, match="failed or waiting can be retried, not 'running'"):
            app.retry_runs(task="t", status="running")
        with pytest.raises(BadOption, match="Name a queue, task"):
            app.cancel_runs()
        with pytest.raises(BadOption, match="no time zone"):
            app.cancel_runs(since=datetime(2030, 1, 1))  # noqa: DTZ001 -- that is the point.
        with pytest.raises(UnknownQueue):
            app.purge("nope")
