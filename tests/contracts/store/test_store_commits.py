# SPDX-License-Identifier: MIT
"""An error, or a cut, between a statement's rows and the end of its transaction; for every verb.

An answer to a worker has been committed: nothing is believed of a statement that answered with its
rows and then failed.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec import structs

from byrote.core.progress import report_of
from byrote.core.run import Leased
from tests.contracts.store.parts import LEASE, Db, Parts, returned
from tests.support import (
    UNCOMMITTED,
    commits_held,
    count,
    enqueue,
    failing_once,
    history,
    row_of,
    run_of,
    sessions,
    until,
    waiting_commits,
)

RUNS = "byrote_task_runs"


def claim(parts: Parts, db: Db, lease: Leased) -> None:
    del lease
    found = parts.claim(2)

    assert len(found) == 2
    assert {(run.id, run.attempt) for run in found} == claimed(db, found)


def claimed(db: Db, found: list[Leased]) -> set[tuple[str, int]]:
    """What the database has leased by these tokens."""
    tokens = [run.token for run in found]
    text = """select result_id::text, attempts from byrote_task_runs
              where status = 'RUNNING' and lease_token = any (%s::uuid[])"""
    return set(db.execute(text, (tokens,)))


def finish(parts: Parts, db: Db, lease: Leased) -> None:
    assert parts.finish(lease, returned(1)) == "S"
    assert run_of(db, lease.id).result == 1
    assert history(db, lease.id) == ["Enqueued", "Claimed", "Succeeded"]


def renew(parts: Parts, db: Db, lease: Leased) -> None:
    before = row_of(db, lease.id)["leased_until"]

    assert parts.registry.renew([lease], lease_for=2 * LEASE) == {lease.id: False}
    assert row_of(db, lease.id)["leased_until"] > before


def note(parts: Parts, db: Db, lease: Leased) -> None:
    packed = returned("done")
    step = {"id": lease.id, "token": lease.token, "sequence": 0, "kind": "step", "name": "a"}
    noted = parts.ledgers.note([step | {"result": packed.text, "hash": packed.digest}])

    assert [row.id for row in noted] == [lease.id]
    assert count(db, "byrote_steps") == 1


def progress(parts: Parts, db: Db, lease: Leased) -> None:
    report = {**structs.asdict(report_of(50)), "id": lease.id, "token": lease.token}

    assert parts.ledgers.progress([report]) == [lease.id]
    assert count(db, "byrote_progress") == 1


VERBS: dict[str, tuple[Callable[[Parts, Db, Leased], None], str]] = {
    "claim": (claim, RUNS),
    "finish": (finish, RUNS),
    "renew": (renew, RUNS),
    "note": (note, "byrote_steps"),
    "progress": (progress, "byrote_progress"),
}


@pytest.fixture
def lease(parts: Parts, db: Db) -> Leased:
    """One run that is leased, of three."""
    enqueue(db, 3)
    [lease] = parts.claim()
    return lease


@pytest.mark.parametrize("act", UNCOMMITTED, ids=UNCOMMITTED.__getitem__)
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_reported_has_been_committed(
    parts: Parts, db: Db, lease: Leased, *, verb: str, act: str
) -> None:
    check, table = VERBS[verb]
    with failing_once(db, act, table=table):
        check(parts, db, lease)


@pytest.mark.parametrize("moment", ["torn", "during"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_connection_that_breaks_before_the_end_of_the_answer_changes_nothing(
    parts: Parts, db: Db, lease: Leased, *, verb: str, moment: Any
) -> None:
    fault = parts.break_next(verb, moment)
    VERBS[verb][0](parts, db, lease)

    assert fault.happened.is_set()


@pytest.mark.parametrize("kind", ["postgres", "http", "schema"], indirect=True)
def test_a_claim_that_is_still_being_written_leaves_no_run_without_a_holder(
    parts: Parts, db: Db
) -> None:
    """The connection breaks while the server is at it. Long before the lease is over, the worker
    has them, or they were given back and it claims them again."""
    enqueue(db, 3)
    parts.claim()
    with ThreadPoolExecutor(1) as pool, commits_held(db) as let_go:
        known = sessions(db)
        fault = parts.break_next("claim", "during")
        asked = pool.submit(parts.claim, 2)
        until(fault.happened.is_set)
        if parts.kind == "postgres":
            # The second copy has ended the first and is at its own commit, or found nothing.
            until(lambda: asked.done() or waiting_commits(db) - known)
        let_go()
        found = asked.result()

    def all_held() -> bool:
        if len(found) < 2:
            found.extend(parts.claim(2 - len(found)))
        return len(found) == 2

    until(all_held, LEASE.total_seconds() / 2)
    assert {(run.id, run.attempt) for run in found} == claimed(db, found)
