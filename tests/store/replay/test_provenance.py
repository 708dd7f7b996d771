# SPDX-License-Identifier: MIT
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from byrote.assembly.identity import new_id
from byrote.core.policy import Retry
from byrote.core.replay.provenance import Provenance, provenance_of
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, count, enqueue, finish, run_of, success, verdict


def register(db: Db, found: Provenance) -> int:
    [number] = fetch(db, queries.register_provenance(digest=found.digest, doc=found.text))
    return number


def test_the_same_environment_is_stored_once(db: Db) -> None:
    doc = {"python": {"version": "3.13.0"}, "packages": {"a": "1"}}
    first, again = register(db, provenance_of(doc)), register(db, provenance_of(doc))
    other = register(db, provenance_of(doc | {"packages": {}}))

    assert first == again != other
    assert count(db, "byrote_provenance") == 2
    [found] = fetch(db, queries.provenances([first]))
    assert (found.doc, found.hash) == (doc, provenance_of(doc).digest)


def test_two_that_register_the_same_at_once_get_the_same_number(
    db: Db, address: DatabaseAddress
) -> None:
    """The second waits for the first, sees nothing of it in its own snapshot, and still answers."""
    found = provenance_of({"python": "same"})
    numbers: list[int] = []
    with address.open("other") as other:
        with db.transaction():
            numbers.append(register(db, found))
            thread = threading.Thread(target=lambda: numbers.append(register(other, found)))
            thread.start()
            while not _waits(db, other):
                pass
        thread.join(10)

    assert len(numbers) == 2
    assert numbers[0] == numbers[1]
    assert count(db, "byrote_provenance") == 1


def _waits(db: Db, other: Db) -> bool:
    text = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
    return db.execute(text, (other.info.backend_pid,)).fetchone() == (True,)


def test_each_attempt_has_its_environment_until_the_run_is_dead(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db, retry=Retry(attempts=3))
    used = {"attempt": 1, "wall_us": 5, "cpu_us": 4, "rss_max": 3}
    finish(db, [verdict(claim(db)[0], "R", delay_us=0, more={"provenance": 7, "usage": used})])
    finish(db, [verdict(claim(db)[0], "L")])
    finish(db, [verdict(claim(db)[0], "F", more={"provenance": 8, "usage": used | {"attempt": 3}})])
    dead = run_of(db, run_id)

    assert dead.status == "FAILED"
    assert dead.provenance == [7, None, 8]
    assert [usage["attempt"] for usage in dead.usage] == [1, 3]
    fetch(db, queries.retry([run_id]))
    assert run_of(db, run_id).provenance == [7, None, 8]
    finish(db, [success(claim(db)[0]) | {"more": {"provenance": 9}}])
    assert run_of(db, run_id).provenance == [7, None, 8, 9]


def test_an_attempt_that_waits_has_its_environment(db: Db) -> None:
    [run_id] = enqueue(db)
    more = {"provenance": 7, "usage": {"attempt": 1}}
    wait = {"wait": "event", "event": "paid", "more": more}
    finish(db, [verdict(claim(db)[0], "Z", delay_us=1_000_000, **wait)])
    run = run_of(db, run_id)

    assert (run.status, run.wait_reason) == ("WAITING", "event")
    assert (run.provenance, run.usage) == ([7], [{"attempt": 1}])


def test_what_is_known_of_a_run_follows_it_into_the_archive(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    accepted = run_of(db, run_id).enqueued_at
    finish(db, [success(claim(db)[0]) | {"more": {"provenance": 7, "usage": {"attempt": 1}}}])
    clock.advance(hours=2)
    fetch(db, queries.archive(after="00000000-0000-0000-0000-000000000000"))
    archived = run_of(db, run_id)

    assert count(db, "byrote_task_runs") == 0
    assert (archived.provenance, archived.usage) == ([7], [{"attempt": 1}])
    assert archived.as_of == accepted


def test_a_run_lost_too_often_keeps_what_is_known(db: Db, clock: FakeClock) -> None:
    [run_id] = enqueue(db)
    finish(db, [verdict(claim(db)[0], "Z", delay_us=0, more={"provenance": 7})])
    for _ in range(10):
        claim(db)
        clock.advance(minutes=1)
        fetch(db, queries.sweep())

    assert run_of(db, run_id).status == "FAILED"
    assert run_of(db, run_id).provenance == [7]


def test_a_run_of_ten_thousand_attempts_keeps_a_thousand(db: Db) -> None:
    [[gaps]] = db.execute("select byrote_noted(array[1], 4, 9)").fetchall()
    [[filled]] = db.execute("select byrote_noted(array_fill(1, array[1000]), 10000, 9)").fetchall()

    assert gaps == [1, None, None, 9]
    assert (len(filled), filled[-1], filled[-2]) == (1000, 9, 1)


def test_the_environment_of_a_batch_is_sent_once_and_may_be_overridden(db: Db) -> None:
    ids = enqueue(db, 3)
    first, other, nobody = map(success, claim(db, 3))
    rows = [first, other | {"more": {"provenance": 8}}, nobody | {"more": {"provenance": 0}}]
    fetch(db, queries.finish(rows, provenance=7))

    assert [run_of(db, run_id).provenance for run_id in ids] == [[7], [8], []]


def test_an_attempt_without_provenance_has_no_entry(db: Db) -> None:
    [run_id] = enqueue(db)
    finish(db, [success(claim(db)[0])])

    assert run_of(db, run_id).provenance == []
    assert run_of(db, run_id).usage == []


def test_now_is_when_the_run_was_accepted_and_a_replay_has_the_originals(
    db: Db, clock: FakeClock
) -> None:
    clock.advance(microseconds=123456)
    [run_id] = enqueue(db, run_after=timedelta(0), retry=Retry(attempts=2))
    accepted = run_of(db, run_id).enqueued_at
    clock.advance(minutes=5)
    [lease] = claim(db)
    finish(db, [verdict(lease, "R", delay_us=0)])
    [again] = claim(db)
    finish(db, [success(again)])
    clock.advance(days=1)
    replays = [_replay(db, run_id)]
    clock.advance(days=1)
    replays.append(_replay(db, replays[0]))
    leases = [lease, again, *claim(db, 2)]

    assert {lease.as_of_us for lease in leases} == {_micros(accepted)}
    assert [run_of(db, replay).as_of for replay in replays] == [accepted, accepted]
    assert run_of(db, replays[0]).enqueued_at > accepted


def _replay(db: Db, original: str) -> str:
    [made] = fetch(db, queries.replay(original=original, id=new_id()))
    return made


def _micros(moment: Any) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
