# SPDX-License-Identifier: MIT
from byrote.core.ports.replies import UnknownTaskRef
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import Db, claim, enqueue


def unknown_tasks(db: Db, *, queues: list[str], tasks: list[str]) -> set[UnknownTaskRef]:
    return set(fetch(db, queries.unknown_tasks(queues=queues, tasks=tasks)))


def test_a_task_that_a_worker_serves_is_not_unknown(db: Db) -> None:
    enqueue(db, 3, task="known")

    assert unknown_tasks(db, queues=["default"], tasks=["known@1"]) == set()


def test_unknown_tasks_and_queues_are_found_once_each(db: Db) -> None:
    enqueue(db, 2, task="known")
    enqueue(db, 2, task="new")
    enqueue(db, 2, task="known", queue="elsewhere")
    enqueue(db, 1, task="known", version=2, queue="zebra")

    assert unknown_tasks(db, queues=["default"], tasks=["known@1"]) == {
        UnknownTaskRef("default", "new", 1),
        UnknownTaskRef("elsewhere", "known", 1),
        UnknownTaskRef("zebra", "known", 2),
    }


def test_only_what_is_ready_is_looked_at(db: Db) -> None:
    enqueue(db, task="later", run_after="1h")
    enqueue(db, task="t", queue="busy")
    claim(db, queues=["busy"])

    assert unknown_tasks(db, queues=[], tasks=[]) == set()


def test_a_look_reads_only_the_front_of_a_long_queue(db: Db) -> None:
    enqueue(db, 300, task="known")
    enqueue(db, 1, task="new")
    assert unknown_tasks(db, queues=["default"], tasks=["known@1"]) == set()

    claim(db, 250, tasks=["known@1"])
    assert unknown_tasks(db, queues=["default"], tasks=["known@1"]) == {
        UnknownTaskRef("default", "new", 1)
    }
