# SPDX-License-Identifier: MIT
"""Which queues a worker serves: the configured ones, or those its tasks and schedules name."""

import pytest

from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import run_of, until
from tests.tasks import queued
from tests.worker.harness import EXECUTORS, Database, StartWorker, await_end, send


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_worker_that_is_not_reported_serves_the_queues_its_app_names(
    db: Database, start_worker: StartWorker, executor: str
) -> None:
    mail, default = queued.send.spec("hi"), queued.count.spec("hi")
    night = queued.count.using(queue="night").spec("hi")
    ids = send(db, mail, default, night)
    start_worker("tests.tasks.queued:app", executor=executor)
    [row] = until(lambda: fetch(db, queries.workers()))
    ended = await_end(db, *ids)

    assert row.queues == ["default", "mail", "night"]
    assert [run.status for run in ended] == [Status.SUCCESSFUL] * 3


def test_a_worker_that_is_reported_serves_only_those(
    db: Database, start_worker: StartWorker
) -> None:
    elsewhere, here = send(db, queued.send.spec("hi"), queued.count.spec("hi"))
    start_worker("tests.tasks.queued:app", queues="default", drain=True).wait(30)

    assert run_of(db, here).status is Status.SUCCESSFUL
    assert run_of(db, elsewhere).status is Status.READY
