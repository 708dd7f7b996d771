# SPDX-License-Identifier: MIT
"""`byrote verify` finds nothing in what the store wrote, and everything that was planted."""

from collections.abc import Callable

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.log.findings import CHECKS
from byrote.core.state import Status
from byrote.store import queries, query
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.verify import VerifyReport, expected_indexes, verify, verify_on
from byrote.testing import FakeClock
from tests.mutants.fence import unfenced
from tests.store.enqueue.test_memo import ask, compute, spec
from tests.store.verify.walker import Walker
from tests.support import (
    LEASE,
    Db,
    claim,
    enqueue,
    finish,
    history,
    register,
    success,
    until,
    verdict,
)


def found(report: VerifyReport) -> set[str]:
    return {check for check, count in report.counts.items() if count}


@pytest.fixture
def story(db: Db, clock: FakeClock) -> list[str]:
    """Three runs: one done after a loss, one that waits, one that runs."""
    [done] = enqueue(db)
    claim(db)
    clock.advance(seconds=31)
    fetch(db, queries.sweep())
    [lease] = claim(db)
    finish(db, [success(lease)])
    [waits] = enqueue(db, run_after="1h")
    [runs] = enqueue(db)
    [lease] = claim(db)
    step = {"id": runs, "token": lease.token, "sequence": 1, "kind": "step", "name": "a"}
    fetch(db, queries.step([{**step, "result": "1", "hash": success(lease, "1")["hash"]}]))
    return [done, waits, runs]


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found_in_what_the_store_wrote(
    db: Db, address: DatabaseAddress, clock: FakeClock, seed: int
) -> None:
    walker = Walker(db, clock, 9_000 + seed)
    for _ in range(200):
        walker.step()
    heard: list[tuple[int, int]] = []
    report = verify(address, on_progress=lambda done, whole: heard.append((done, whole)))

    assert report.findings == []
    assert report.sound
    assert report.runs == len(walker.ids)
    assert report.events > 2 * report.runs
    assert heard[-1] == (report.runs, report.runs)


def test_an_empty_database_is_sound(address: DatabaseAddress, url: str) -> None:
    report = verify(address)

    assert (report.sound, report.runs, set(report.counts)) == (True, 0, set(CHECKS))


PLANTED = {
    "a lease taken before it ran out": (
        "leases",
        "update byrote_events set at = at - interval '20 s' where kind = 'Lost'",
    ),
    "a claim while another holds the run": (
        "leases",
        """update byrote_events set kind = 'Renewed', at = at - interval '9 s',
          leased_until = at + interval '1 h' where kind = 'Lost'""",
    ),
    "a finish after the lease ran out": (
        "fence",
        "update byrote_events set at = at + interval '1 h' where kind = 'Succeeded'",
    ),
    "a finish of an attempt that was lost": (
        "fence",
        "update byrote_events set attempts = '{1}' where kind = 'Succeeded'",
    ),
    "a step after the lease ran out": (
        "fence",
        "update byrote_steps set at = at + interval '1 h'",
    ),
    "a step of an unclaimed attempt": ("fence", "update byrote_steps set attempt = 7"),
    "a claim after the end": (
        "ends",
        """insert into byrote_events (
            at, kind, worker, lease_token, leased_until, runs, attempts, moves
          )
          select at, 'Claimed', 'w', gen_random_uuid(), at, runs, '{3}', '{6}'
          from byrote_events where kind = 'Succeeded'""",
    ),
    "a run in two tables": (
        "ends",
        "insert into byrote_archive select * from byrote_task_runs where status = 'SUCCESSFUL'",
    ),
    "a failed run in the queue": (
        "ends",
        "update byrote_task_runs set status = 'FAILED' where status = 'SUCCESSFUL'",
    ),
    "a run that vanished under way": (
        "kept",
        "delete from byrote_task_runs where status = 'RUNNING'",
    ),
    "a result that vanished too soon": (
        "kept",
        "delete from byrote_task_runs where status = 'SUCCESSFUL'",
    ),
    "an attempt that was skipped": (
        "attempts",
        "update byrote_events set attempts = '{3}' where kind = 'Claimed' and attempts = '{2}'",
    ),
    "more attempts charged than allowed": (
        "attempts",
        "update byrote_task_runs set charged = 9 where status = 'SUCCESSFUL'",
    ),
    "a move that was not logged": (
        "moves",
        "delete from byrote_events where kind = 'Claimed' and attempts = '{2}'",
    ),
    "a move logged twice": (
        "moves",
        "insert into byrote_events select * from byrote_events where kind = 'Lost'",
    ),
    "an impossible move": ("moves", "update byrote_events set kind = 'Promoted' where kind='Lost'"),
    "a row changed behind the log": ("rows", "update byrote_task_runs set leased_by = 'eve'"),
    "a move the row does not know": (
        "rows",
        "update byrote_task_runs set moves = 2 where status = 'SUCCESSFUL'",
    ),
    "a run that was not logged": ("rows", "delete from byrote_events where '{0}' = attempts"),
    "a claim before the run was due": (
        "early",
        """update byrote_events set data = jsonb_build_object(
          runs[1], jsonb_build_object('run_after', at + interval '1 day'))
          where kind = 'Enqueued' and data is null""",
    ),
    "a spec that was edited": (
        "specs",
        """update byrote_task_runs set spec_json = '{"task":"u"}' where status = 'WAITING'""",
    ),
    "a spec that is not JSON": (
        "specs",
        "update byrote_task_runs set spec_json = '{' where status = 'WAITING'",
    ),
    "a result that was edited": (
        "results",
        "update byrote_task_runs set return_json = '2' where status = 'SUCCESSFUL'",
    ),
    "a step's result that was edited": ("results", "update byrote_steps set result_json = '2'"),
    "a run of another task than its spec's": (
        "specs",
        "update byrote_task_runs set task_path = 'u' where status = 'WAITING'",
    ),
    "a run of another version than its spec's": (
        "specs",
        "update byrote_task_runs set task_version = 9 where status = 'SUCCESSFUL'",
    ),
    "a result that was removed": (
        "results",
        """update byrote_task_runs set return_json = null, result_hash = null
          where status = 'SUCCESSFUL'""",
    ),
    "a result that was invented": (
        "results",
        """update byrote_task_runs set return_json = '1', result_hash = sha256('1')
          where status = 'WAITING'""",
    ),
    "an environment that is not there": (
        "records",
        "update byrote_task_runs set provenance = '{7}' where status = 'SUCCESSFUL'",
    ),
}


def test_every_planted_violation_is_found(db: Db, story: list[str]) -> None:
    assert len(story) == 3
    missed = {}
    for case, (check, statement) in PLANTED.items():
        with db.transaction() as planted:
            assert verify_on(db).findings == []
            assert db.execute(statement).rowcount >= 1, case  # type: ignore[call-overload]
            report = verify_on(db)
            if check not in found(report) or not all(f.run in story for f in report.findings):
                missed[case] = report.findings
            raise psycopg.Rollback(planted)

    assert missed == {}
    assert {check for check, _ in PLANTED.values()} == set(CHECKS) - {"stuck", "catalog", "chain"}


def test_runs_left_lying_while_a_worker_lives_are_stuck(db: Db, address: DatabaseAddress) -> None:
    enqueue(db)
    claim(db)
    enqueue(db, run_after="1h")
    db.execute("update byrote_task_runs set run_after = now() - interval '1 h'")
    db.execute(
        "update byrote_task_runs set leased_until = now() - interval '1 h' where status = 'RUNNING'"
    )
    assert "stuck" not in found(verify(address))
    register(db, "w", "default")

    assert verify(address).counts["stuck"] == 2


MISSING = {
    "index byrote_ready_for_claim": "drop index byrote_ready_for_claim",
    "index byrote_memo_pkey": "alter table byrote_memo drop constraint byrote_memo_pkey",
    "constraint byrote_task_runs.byrote_run_is_sound": (
        "alter table byrote_task_runs drop constraint byrote_run_is_sound"
    ),
    "constraint byrote_queues.byrote_events_are_all_or_few": (
        "alter table byrote_queues drop constraint byrote_events_are_all_or_few"
    ),
}


def test_what_the_migrations_made_and_is_missing_is_found(db: Db) -> None:
    assert "byrote_events_by_seq" not in expected_indexes()
    for missing, statement in MISSING.items():
        with db.transaction() as planted:
            assert verify_on(db).sound
            db.execute(statement)  # type: ignore[call-overload]
            [finding] = verify_on(db).findings
            raise psycopg.Rollback(planted)

        assert (finding.check, finding.message) == ("catalog", f"{missing} is missing")


def test_partitions_that_no_duty_makes_are_found(bare: DatabaseAddress, own: Db) -> None:
    register(own, "w", "default")
    assert verify(bare).sound
    for (name,) in own.execute(
        "select relname from pg_class where relname ~ '^byrote_events_[0-9]{8}$' and relkind = 'r'"
    ).fetchall():
        own.execute(f"drop table {name}")  # type: ignore[call-overload]

    assert [finding.check for finding in verify(bare).findings] == ["catalog"]


def test_a_queue_with_few_events_logs_less_and_is_sound(
    db: Db, address: DatabaseAddress, clock: FakeClock
) -> None:
    db.execute(
        "insert into byrote_queues (queue_name, events, quiet_since) values ('default', 'few', %s)",
        (clock.now,),
    )
    enqueue(db, run_after="5s")
    clock.advance(seconds=6)
    fetch(db, queries.promote())
    [lease] = claim(db)
    clock.advance(seconds=20)
    fetch(db, queries.renew([lease], lease_for=LEASE))
    assert verify(address).findings == []
    clock.advance(seconds=20)
    finish(db, [success(lease)])

    assert verify(address).findings == []


def zombie(db: Db, clock: FakeClock, worker: str) -> None:
    enqueue(db)
    [late] = claim(db, worker="slow")
    clock.advance(seconds=31)
    fetch(db, queries.sweep())
    claim(db, 9, worker=worker)
    sent = {**verdict(late, "S", result="1"), "attempt": late.attempt}
    finish(db, [{**sent, "hash": success(late, "1")["hash"]}])


def overslept(db: Db, clock: FakeClock, worker: str) -> None:
    enqueue(db)
    [late] = claim(db, worker=worker)
    clock.advance(seconds=31)
    fetch(db, queries.renew([late], lease_for=LEASE))


@pytest.mark.parametrize("worker", ["quick", "slow"], ids=["another", "the same"])
@pytest.mark.parametrize("trouble", [zombie, overslept], ids=["zombie", "overslept"])
def test_without_the_fence_the_verifier_finds_violations(
    db: Db,
    address: DatabaseAddress,
    clock: FakeClock,
    *,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[Db, FakeClock, str], None],
    worker: str,
) -> None:
    """With the fence the very same story is sound: what is found is the fence's absence."""
    trouble(db, clock, worker)
    assert verify(address).findings == []
    monkeypatch.setattr(query, "statement", unfenced)
    trouble(db, clock, worker)

    assert "fence" in found(verify(address))


def chain_all(db: Db, **options: int) -> None:
    """Chain the whole log; transactions in other databases of the server hold it up a while."""

    def chained() -> bool:
        while fetch(db, queries.chain(**options)):
            pass
        unchained = """
          select count(*) from byrote_events as event
          where not exists (
            select 1 from byrote_chain as link where (link.xid, link.seq) >= (event.xid, event.seq)
          )
        """
        return db.execute(unchained).fetchone() == (0,)

    until(chained, within=60.0)


def test_the_chain_holds_until_the_log_is_touched(
    db: Db, address: DatabaseAddress, story: list[str]
) -> None:
    chain_all(db, limit=3)
    links = db.execute("select count(*) from byrote_chain").fetchone()
    assert links is not None
    assert links[0] > 2
    assert verify(address).sound
    db.execute("update byrote_events set worker = 'eve' where kind = 'Claimed'")
    assert verify(address).counts["chain"] >= 1
    db.execute("delete from byrote_events")

    assert verify(address).counts["chain"] == links[0]


def test_the_chain_waits_for_transactions_that_are_under_way(
    db: Db, address: DatabaseAddress
) -> None:
    """An event that commits late comes after what was chained, never before it."""
    with address.open("slow") as slow:
        with slow.transaction():
            enqueue(slow)
            enqueue(db, 2)
            assert fetch(db, queries.chain()) == []
        chain_all(db)

    assert verify(address).sound


def test_remembered_and_shadow_runs_are_sound_even_when_these_are_forgotten(
    db: Db, address: DatabaseAddress
) -> None:
    [original] = [run.id for run in ask(db, spec())]
    compute(db)
    [remembered] = ask(db, spec())
    ask(db, spec(run_after="1h"))
    fetch(db, queries.shadow([(new_id(), original)], queue="shadow"))
    assert remembered.status is Status.SUCCESSFUL
    assert verify(address).findings == []
    db.execute("delete from byrote_task_runs where shadow")

    assert verify(address).findings == []


def test_a_deleted_dead_letter_is_not_a_finding(db: Db, address: DatabaseAddress) -> None:
    [kept, gone] = enqueue(db, 2)
    finish(db, [verdict(lease, "F") for lease in claim(db, 2)])
    assert fetch(db, queries.delete_dead([gone])) == [gone]
    assert verify(address).findings == []
    assert history(db, gone) == ["Enqueued", "Claimed", "Failed", "Deleted"]
    db.execute("delete from byrote_dead")

    assert [(found.check, found.run) for found in verify(address).findings] == [("kept", kept)]
