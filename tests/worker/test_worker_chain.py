# SPDX-License-Identifier: MIT
from byrote.store.connect import DatabaseAddress
from byrote.store.verify import verify
from tests.worker.harness import Database, StartWorker, await_end, await_row, send, spec


def test_a_worker_with_chain_events_chains_the_log(
    db: Database, url: str, start_worker: StartWorker
) -> None:
    start_worker(chain_events="true")
    await_end(db, *send(db, *(spec("echo", n) for n in range(20))))
    await_row(db, "select 1 from byrote_chain having sum(events) >= 3")
    await_row(
        db,
        """select 1 where (select sum(events) from byrote_chain)
           = (select count(*) from byrote_events)""",
    )

    assert verify(DatabaseAddress(url)).sound


def test_a_worker_without_chain_events_chains_nothing(
    db: Database, start_worker: StartWorker
) -> None:
    worker = start_worker()
    await_end(db, *send(db, *(spec("echo", n) for n in range(5))))
    worker.stop()

    assert db.execute("select count(*) from byrote_chain").fetchone() == (0,)
