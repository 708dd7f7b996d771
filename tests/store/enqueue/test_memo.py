# SPDX-License-Identifier: MIT
"""Results that answer later runs: kept by finish, given by enqueue_memo, pruned when too old."""

import threading
from typing import Any

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.memo import memo_key
from byrote.core.run import Leased, Run
from byrote.core.spec import Delivery, Spec, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import enqueue_memo
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.test_locks import locked
from tests.support import (
    Db,
    claim,
    count,
    finish,
    history,
    register,
    row_of,
    run_of,
    success,
    verdict,
)

CODE, OTHER = "a" * 64, "b" * 64
CODES = {("t", 1): CODE}
HOUR_US = 3_600_000_000


def spec(n: int = 1, **delivery: Any) -> Spec:
    return describe("t", 1, [n], {}, delivery=Delivery(**delivery))


def ask(db: Db, *specs: Spec, code: str = CODE) -> list[Run]:
    sent = [(new_id(), each) for each in specs]
    assert len(fetch(db, enqueue_memo(sent, {("t", 1): code}))) == len(specs)
    return [run_of(db, run_id) for run_id, _ in sent]


def kept(lease: Leased, keep_us: int = HOUR_US) -> dict[str, Any]:
    """The report of a worker on a result that is to be remembered."""
    key = memo_key(CODE, lease.spec_json)
    return {"spec": lease.spec_hash.hex(), "code": key, "keep_us": keep_us}


def compute(db: Db, result: str = "42", *, keep_us: int = HOUR_US, letter: str = "S") -> str:
    """Finish the next run as a worker does that remembers its task's results."""
    [lease] = claim(db)
    memo = {
        "spec": lease.spec_hash.hex(),
        "code": memo_key(CODE, lease.spec_json),
        "keep_us": keep_us,
    }
    said = success(lease, result) if letter == "S" else verdict(lease, letter, delay_us=0)
    assert finish(db, [said | {"more": {"memo": memo}}]) == [lease.id]
    return lease.id


def test_the_second_run_of_a_spec_is_successful_from_the_start(db: Db, clock: FakeClock) -> None:
    [first] = ask(db, spec(labels={"a": "b"}))
    compute(db, '{"n":1}')
    clock.advance(minutes=59)
    [second] = ask(db, spec(priority=3, labels={"c": "d"}))

    assert (first.status, first.memo_of) == (Status.READY, None)
    assert (second.status, second.memo_of) == (Status.SUCCESSFUL, first.id)
    assert (second.result, second.result_hash) == ({"n": 1}, run_of(db, first.id).result_hash)
    assert (second.attempts, second.charged, second.worker_ids) == (0, 0, [])
    assert second.finished_at == second.enqueued_at > first.enqueued_at
    assert (second.priority, second.labels, second.spec_hash) == (3, {"c": "d"}, first.spec_hash)
    # The moment its result is of: a replay of it must be dealt the same.
    assert second.as_of == first.enqueued_at
    assert claim(db) == []


def test_a_run_answered_from_a_memo_has_its_events_in_the_log(db: Db) -> None:
    [first] = ask(db, spec())
    compute(db)
    [second] = ask(db, spec())

    assert history(db, second.id) == ["Enqueued", "Remembered"]
    assert row_of(db, second.id)["moves"] == 2
    told = "select data from byrote_event_log where result_id = %s and kind = 'Remembered'"
    assert db.execute(told, (second.id,)).fetchall() == [({"memo_of": first.id},)]


def test_other_code_another_spec_and_another_task_are_computed(db: Db) -> None:
    ask(db, spec())
    compute(db)
    unknown = new_id()
    fetch(db, enqueue_memo([(unknown, spec())], {("u", 1): CODE}))

    assert [run.status for run in ask(db, spec(), code=OTHER)] == [Status.READY]
    assert [run.status for run in ask(db, spec(2))] == [Status.READY]
    assert run_of(db, unknown).status is Status.READY


def test_in_one_batch_some_are_answered_and_some_are_not(db: Db) -> None:
    ask(db, spec(1))
    compute(db)
    runs = ask(db, spec(0), spec(1), spec(2, run_after="1h"), spec(1), spec(1, run_after="1h"))

    assert [run.status for run in runs] == [
        Status.READY, Status.SUCCESSFUL, Status.WAITING, Status.SUCCESSFUL, Status.WAITING,
    ]  # fmt: skip
    # What is for later is not answered now.
    assert [run.memo_of is None for run in runs] == [True, False, True, False, True]


def test_a_result_answers_until_it_is_too_old_and_is_pruned_then(db: Db, clock: FakeClock) -> None:
    ask(db, spec())
    compute(db)
    clock.advance(hours=1)

    assert [run.status for run in ask(db, spec())] == [Status.READY]
    assert count(db, "byrote_memo") == 1
    assert fetch(db, queries.prune_memos()) == [1]
    assert fetch(db, queries.prune_memos()) == [0]
    compute(db, "43")
    assert fetch(db, queries.prune_memos()) == [0]
    assert [run.result for run in ask(db, spec())] == [43]


def test_pruning_takes_a_bounded_number_oldest_first(db: Db, clock: FakeClock) -> None:
    ask(db, *(spec(n) for n in range(3)))
    for hours in (3, 1, 2):
        compute(db, keep_us=hours * HOUR_US)
    clock.advance(hours=4)

    assert fetch(db, queries.prune_memos(limit=2)) == [2]
    assert [run.status for run in ask(db, spec(0))] == [Status.READY]
    assert count(db, "byrote_memo") == 1


def test_a_result_survives_the_run_it_came_from(db: Db, clock: FakeClock) -> None:
    [first] = ask(db, spec())
    compute(db, keep_us=90 * 24 * HOUR_US)
    clock.advance(days=40)
    fetch(db, queries.archive(after="00000000-0000-0000-0000-000000000000"))
    [second] = ask(db, spec())
    fetch(db, queries.prune())
    [third] = ask(db, spec())

    assert fetch(db, queries.run(first.id)) == []
    assert (second.memo_of, second.result) == (third.memo_of, third.result) == (first.id, 42)


def test_an_answered_run_is_archived_with_what_it_came_from(db: Db, clock: FakeClock) -> None:
    ask(db, spec())
    compute(db)
    [second] = ask(db, spec())
    clock.advance(hours=2)
    fetch(db, queries.archive(after="00000000-0000-0000-0000-000000000000"))

    assert count(db, "byrote_archive") == 2
    assert run_of(db, second.id) == second


@pytest.mark.parametrize("letter", list("RFCZLX"))
def test_only_success_is_remembered(db: Db, letter: str) -> None:
    ask(db, spec())
    compute(db, letter=letter)

    assert count(db, "byrote_memo") == 0


def test_a_worker_that_lost_its_lease_leaves_nothing_to_remember(db: Db, clock: FakeClock) -> None:
    ask(db, spec())
    [lease] = claim(db)
    clock.advance(minutes=5)
    memo = kept(lease, HOUR_US)

    assert finish(db, [success(lease) | {"more": {"memo": memo}}]) == []
    assert count(db, "byrote_memo") == 0


def test_a_replay_is_computed_and_not_remembered(db: Db) -> None:
    [first] = ask(db, spec())
    compute(db, "42")
    again = new_id()
    fetch(db, queries.replay(original=first.id, id=again))
    assert run_of(db, again).status is Status.READY
    compute(db, "43")

    assert run_of(db, again).result == 43
    assert [run.memo_of for run in ask(db, spec())] == [first.id]


def test_a_run_that_was_accepted_without_code_is_computed_and_remembered(db: Db) -> None:
    """`byrote enqueue` knows a name and no code."""
    ask(db, spec())
    compute(db, "42")
    by_name = new_id()
    fetch(db, queries.enqueue_one(by_name, spec()))
    assert run_of(db, by_name).status is Status.READY
    compute(db, "43")

    assert [(run.memo_of, run.result) for run in ask(db, spec())] == [(by_name, 43)]


def test_specs_that_are_the_same_may_end_in_one_statement(db: Db) -> None:
    ask(db, spec(), spec())
    leases = claim(db, 2)
    memo = {"spec": spec().digest.hex(), "code": CODE, "keep_us": HOUR_US}
    verdicts = [success(lease, str(n)) | {"more": {"memo": memo}} for n, lease in enumerate(leases)]

    assert len(finish(db, verdicts)) == 2
    assert count(db, "byrote_memo") == 1


def test_a_locked_result_holds_up_no_finish(db: Db, address: DatabaseAddress) -> None:
    """The run ends; its result is remembered the next time."""
    ask(db, spec())
    compute(db, "1")
    text = "update byrote_memo set kept_until = '-infinity' returning result_id::text"
    [[stored]] = db.execute(text)
    ask(db, spec(), spec(2))
    leases = claim(db, 2)
    with locked(address, "byrote_memo", "result_id", stored):
        verdicts = [success(lease, "2") | {"more": {"memo": kept(lease)}} for lease in leases]
        accepted = finish(db, verdicts)

    assert sorted(accepted) == sorted(lease.id for lease in leases)
    assert run_of(db, leases[0].id).result == 2
    results = db.execute("select return_json from byrote_memo order by made_at")
    assert results.fetchall() == [("1",), ("2",)]


def test_two_workers_remember_the_same_spec_at_once(db: Db, address: DatabaseAddress) -> None:
    ask(db, spec(), spec())
    one, two = claim(db, 2)
    key = memo_key(CODE, spec().text)
    memo = {"more": {"memo": {"spec": spec().digest.hex(), "code": key, "keep_us": HOUR_US}}}
    accepted: list[str] = []
    with address.open("other") as other:
        with db.transaction():
            accepted += finish(db, [success(one, "1") | memo])
            rival = threading.Thread(
                target=lambda: accepted.extend(finish(other, [success(two, "2") | memo]))
            )
            rival.start()
            text = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
            while db.execute(text, (other.info.backend_pid,)).fetchone() != (True,):
                assert rival.is_alive()
        rival.join(10)

    assert accepted == [one.id, two.id]
    assert [(run.memo_of, run.result) for run in ask(db, spec())] == [(two.id, 2)]


def test_an_answer_joins_the_senders_transaction(db: Db) -> None:
    ask(db, spec())
    compute(db)
    with db.transaction() as sent:
        [run] = ask(db, spec())
        assert run.status is Status.SUCCESSFUL
        raise psycopg.Rollback(sent)

    assert fetch(db, queries.run(run.id)) == []
    assert history(db, run.id) == []


def test_an_answer_from_a_memo_wakes_no_worker(db: Db, address: DatabaseAddress) -> None:
    ask(db, spec())
    compute(db)
    register(db, "w", "default")
    fetch(db, queries.idle(worker="w", idle=True))
    with address.open("listener") as listener:
        listener.execute("listen byrote_ready")
        ask(db, spec())
        assert list(listener.notifies(timeout=0)) == []
        ask(db, spec(2))
        assert [told.payload for told in listener.notifies(timeout=5, stop_after=1)] == ["default"]
