# SPDX-License-Identifier: MIT
"""Shadow runs: rows of their own, marked, out of everybody's way, gone after a day."""

from datetime import datetime, timedelta

import pytest

from byrote.assembly.identity import new_id
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import (
    Db,
    claim,
    count,
    enqueue,
    finish,
    history,
    register,
    row_of,
    run_of,
    success,
)
from tests.support import verdict as judged

QUEUE = "shadow-1"


def cast(db: Db, *originals: str) -> list[str]:
    """Shadows of these runs, in the order of the originals."""
    pairs = [(new_id(), original) for original in originals]
    fetch(db, queries.shadow(pairs, queue=QUEUE))
    return [run_id for run_id, _ in pairs]


def ended(db: Db, letter: str = "S") -> str:
    [run_id] = enqueue(db, labels={"order": "1"}, timeout="5s", priority=3)
    [lease] = claim(db)
    finish(db, [success(lease, "1") if letter == "S" else judged(lease, letter)])
    return run_id


@pytest.mark.parametrize("letter", "SF")
def test_a_shadow_has_the_spec_of_its_original_and_leaves_that_alone(db: Db, letter: str) -> None:
    original = ended(db, letter)
    before = row_of(db, original)
    [shadow] = cast(db, original)
    row = row_of(db, shadow)

    assert row_of(db, original) == before
    for same in ("spec_json", "spec_hash", "task_path", "task_version", "labels", "timeout_ms"):
        assert row[same] == before[same]
    assert (row["shadow"], row["queue_name"], row["status"]) == (True, QUEUE, "READY")
    assert (row["as_of"], row["max_attempts"]) == (before["enqueued_at"], 1)
    assert (str(row["replay_of"]), row["workflow_id"]) == (original, None)
    assert history(db, shadow) == ["Enqueued"]


def test_shadows_are_claimed_in_the_order_they_were_asked_for(db: Db) -> None:
    originals = [ended(db) for _ in range(3)]
    shadows = cast(db, *reversed(originals))

    assert [lease.id for lease in claim(db, 3, queues=[QUEUE])] == shadows


@pytest.mark.parametrize("letter", "SF")
def test_a_shadow_that_ended_is_still_one(db: Db, letter: str) -> None:
    [shadow] = cast(db, ended(db))
    [lease] = claim(db, queues=[QUEUE])
    finish(db, [success(lease, "1") if letter == "S" else judged(lease, letter)])

    assert run_of(db, shadow).shadow
    assert fetch(db, queries.retry([shadow])) == []


def test_a_shadow_lost_too_often_is_still_one(db: Db, clock: FakeClock) -> None:
    [shadow] = cast(db, ended(db))
    for _ in range(10):
        claim(db, queues=[QUEUE])
        clock.advance(minutes=5)
        fetch(db, queries.sweep())

    assert (run_of(db, shadow).status, run_of(db, shadow).shadow) == ("FAILED", True)


def test_no_list_and_no_count_has_shadows_unless_asked(db: Db) -> None:
    original = ended(db)
    shadow, dead = cast(db, original, original)
    first, second = claim(db, 2, queues=[QUEUE])
    finish(db, [success(first), judged(second, "F")])
    waiting = cast(db, original)[0]

    assert [run.id for run in fetch(db, queries.runs())] == [original]
    every = {run.id for run in fetch(db, queries.runs(shadow=True))}
    assert every == {original, shadow, dead, waiting}
    assert [row.queue for row in fetch(db, queries.queues())] == []
    assert fetch(db, queries.latest_by_hash(run_of(db, original).spec_hash)) == [original]
    assert fetch(db, queries.originals("t", limit=10)) == [original]


def test_the_queues_of_replays_are_not_listed_when_their_workers_have_gone(db: Db) -> None:
    register(db, "w", "byrote.shadow.1", "mail")

    assert [row.queue for row in fetch(db, queries.queues())] == ["mail"]


def test_a_shadow_is_not_enqueued_again_for_real(db: Db) -> None:
    [shadow] = cast(db, ended(db))

    assert fetch(db, queries.replay(original=shadow, id=new_id())) == []


def test_a_run_knows_what_repeats_it(db: Db) -> None:
    original = ended(db)
    [shadow] = cast(db, original)
    again = new_id()
    fetch(db, queries.replay(original=original, id=again))
    found = fetch(db, queries.replays(original))

    assert [(row.id, row.shadow) for row in found] == [(shadow, True), (again, False)]


def test_shadows_are_not_archived_but_pruned_after_a_day(db: Db, clock: FakeClock) -> None:
    original = ended(db)
    shadow, dead, stuck = cast(db, original, original, original)
    first, second = claim(db, 2, queues=[QUEUE])
    finish(db, [success(first), judged(second, "F")])
    clock.advance(hours=23)
    fetch(db, queries.archive(after="00000000-0000-0000-0000-000000000000"))
    fetch(db, queries.prune())
    assert count(db, "byrote_archive") == 1
    assert {run_of(db, run_id).id for run_id in (shadow, dead, stuck)} == {shadow, dead, stuck}

    clock.advance(hours=2)
    [pruned] = fetch(db, queries.prune())
    assert (pruned.shadows, pruned.dead) == (2, 1)
    assert [run.id for run in fetch(db, queries.runs(shadow=True))] == [original]


def test_originals_are_the_newest_that_ended_by_themselves(db: Db, clock: FakeClock) -> None:
    old, failed = ended(db), ended(db, "F")
    clock.advance(hours=2)
    middle = clock_time(db)
    fresh = ended(db)
    fetch(db, queries.cancel(enqueue(db)))
    enqueue(db)
    enqueue(db, task="other")

    assert fetch(db, queries.originals("t", limit=10)) == [fresh, failed, old]
    assert fetch(db, queries.originals("t", limit=1)) == [fresh]
    assert fetch(db, queries.originals("t", limit=10, failed=True)) == [failed]
    assert fetch(db, queries.originals("t", limit=10, since=timedelta(hours=1))) == [fresh]
    assert fetch(db, queries.originals("t", limit=10, since=middle)) == [fresh]


def clock_time(db: Db) -> datetime:
    [[now]] = db.execute("select byrote_now()").fetchall()
    return now  # type: ignore[no-any-return]


def test_the_log_remembers_a_run_whose_row_is_gone(db: Db) -> None:
    run_id = ended(db)
    db.execute("delete from byrote_task_runs")

    assert fetch(db, queries.is_logged(run_id)) == [True]
    assert fetch(db, queries.is_logged(new_id())) == [False]
