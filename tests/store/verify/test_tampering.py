# SPDX-License-Identifier: MIT
"""Texts that were edited together with the hash beside them contradict the hashes in the log."""

import hashlib

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.json.codec import digest_of, pack
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, describe
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.queries.enqueue import enqueue_memo, enqueue_unique
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify, verify_on
from byrote.testing import FakeClock
from tests.store.enqueue.test_memo import ask, compute, spec
from tests.store.steps.test_artifact import keep
from tests.store.verify.test_verify import chain_all, found
from tests.store.verify.walker import Walker
from tests.support import Db, claim, enqueue, finish, success, verdict

FORGED = '{"task":"t","version":1,"args":[666],"kwargs":{}}'


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def life(db: Db, clock: FakeClock) -> dict[str, str]:
    """Runs of every fate, by their names."""
    [original] = [run.id for run in ask(db, spec())]
    compute(db)
    [remembered] = [run.id for run in ask(db, spec())]
    [done] = enqueue(db, retry=Retry(attempts=5))
    for _ in range(2):
        [lease] = claim(db)
        finish(db, [verdict(lease, "R", delay_us=0)])
    claim(db)
    clock.advance(seconds=31)
    fetch(db, queries.sweep())
    [lease] = claim(db)
    for sequence, name in enumerate(("charge", "mail"), start=1):
        step = {"id": done, "token": lease.token, "sequence": sequence, "name": name}
        fetch(db, queries.step([{**step, "kind": "step", "result": "1", "hash": _hex("1")}]))
    step = {"id": done, "token": lease.token, "sequence": 3, "name": "nap", "kind": "sleep"}
    fetch(db, queries.step([{**step, "delay_us": 5_000_000}]))
    for payload in (1, 2):
        fetch(db, queries.signal(done, new_id(), "go", pack(payload)))
    wait = {"id": done, "token": lease.token, "sequence": 4, "kind": "event", "name": "go"}
    fetch(db, queries.step([wait]))
    keep(db, lease, name="report")
    clock.advance(seconds=6)
    fetch(db, queries.step([{**step, "delay_us": 5_000_000}]))
    finish(db, [success(lease, "42")])
    [dead] = enqueue(db)
    finish(db, [verdict(lease, "F") for lease in claim(db)])
    [waits] = enqueue(db, run_after="1h")
    names = {"original": original, "remembered": remembered, "done": done}
    return {**names, "dead": dead, "waits": waits}


FORGED_VALUES = {"spec": FORGED, "spec_hash": digest_of(FORGED), "hash": digest_of("7")}
"""A spec and a result, 7, with their true hashes."""
PLANTED = {
    "spec and hash": (
        "specs",
        "waits",
        """update byrote_task_runs set (spec_json, spec_hash) = (%(spec)s, %(spec_hash)s)
          where result_id = %(waits)s""",
    ),
    "spec and hash of a dead run": (
        "specs",
        "dead",
        "update byrote_dead set (spec_json, spec_hash) = (%(spec)s, %(spec_hash)s)",
    ),
    "result and hash": (
        "results",
        "done",
        """update byrote_task_runs set (return_json, result_hash) = ('7', %(hash)s)
          where result_id = %(done)s""",
    ),
    "remembered result and hash": (
        "results",
        "remembered",
        """update byrote_task_runs set (return_json, result_hash) = ('7', %(hash)s)
          where result_id = %(remembered)s""",
    ),
    "step and hash": (
        "records",
        "done",
        """update byrote_steps set (result_json, result_hash) = ('7', %(hash)s)
          where sequence = 1""",
    ),
    "step removed": ("records", "done", "delete from byrote_steps where sequence = 2"),
    "all steps removed": ("records", "done", "delete from byrote_steps"),
    "step renamed": ("records", "done", "update byrote_steps set name = 'x' where sequence = 1"),
    "steps swapped": (
        "records",
        "done",
        """update byrote_steps set name = case name when 'mail' then 'charge' else 'mail' end
          where sequence < 3""",
    ),
    "step invented": (
        "records",
        "done",
        """insert into byrote_steps (
            result_id, at, sequence, attempt, open, kind, name, result_hash, result_json
          )
          select result_id, at, 9, attempt, open, kind, 'x', result_hash, result_json
          from byrote_steps where sequence = 1""",
    ),
    "sleep shortened": (
        "records",
        "done",
        "update byrote_steps set wake_at = wake_at - interval '1 s' where kind = 'sleep'",
    ),
    "arguments of a step": (
        "records",
        "done",
        "update byrote_steps set args_hash = %(hash)s where sequence = 1",
    ),
    "answer of a wait": (
        "records",
        "done",
        """update byrote_steps set (result_json, result_hash) = ('7', %(hash)s)
          where sequence = 4""",
    ),
    "signal removed": ("records", "done", "delete from byrote_signals where taken_by is null"),
    "signal and hash": (
        "records",
        "done",
        """update byrote_signals set (payload_json, payload_hash) = ('7', %(hash)s)
          where taken_by is null""",
    ),
    "signal renamed": (
        "records",
        "done",
        "update byrote_signals set name = 'x' where taken_by is null",
    ),
    "signal invented": (
        "records",
        "done",
        """insert into byrote_signals (result_id, signal_id, at, name, payload_json, payload_hash)
          values (%(done)s, gen_random_uuid(), now(), 'go', '7', %(hash)s)""",
    ),
    "artifact removed": ("records", "done", "delete from byrote_artifacts"),
    "artifact renamed": ("records", "done", "update byrote_artifacts set name = 'other'"),
    "artifact resized": ("records", "done", "update byrote_artifacts set size = size + 1"),
    "error edited": (
        "records",
        "done",
        """update byrote_task_runs set errors_json = jsonb_set(errors_json, '{1,message}', '"ok"')
          where result_id = %(done)s""",
    ),
    "error removed": (
        "records",
        "done",
        """update byrote_task_runs set errors_json = errors_json - 0
          where result_id = %(done)s""",
    ),
    "all errors removed": (
        "records",
        "done",
        "update byrote_task_runs set errors_json = null where result_id = %(done)s",
    ),
    "error of a dead run": (
        "records",
        "dead",
        """update byrote_dead set errors_json = '[{"kind": "raised"}]'""",
    ),
    "hash in the log removed": (
        "moves",
        "done",
        """update byrote_events set digests = null
          where kind = 'Succeeded' and runs = array[%(done)s::uuid]""",
    ),
}


@pytest.mark.parametrize("case", PLANTED)
def test_what_was_edited_with_its_hash_is_found(db: Db, life: dict[str, str], case: str) -> None:
    check, name, statement = PLANTED[case]
    with db.transaction() as planted:
        assert verify_on(db).findings == []
        values = {**life, **FORGED_VALUES}
        assert db.execute(statement, values).rowcount >= 1  # type: ignore[call-overload]
        report = verify_on(db)
        raise psycopg.Rollback(planted)

    assert {(finding.check, finding.run) for finding in report.findings} >= {(check, life[name])}
    assert {finding.run for finding in report.findings} <= {life[name], life["original"]}


@pytest.mark.parametrize("kind", ["Enqueued", "Succeeded", "StepStored", "ArtifactStored"])
def test_a_log_that_was_edited_to_agree_breaks_its_chain(
    db: Db, address: DatabaseAddress, life: dict[str, str], *, kind: str
) -> None:
    chain_all(db)
    assert verify(address).findings == []
    edit = """
      update byrote_events
      set digests = array_fill(null::bytea, array[cardinality(runs)]), data = data || '{"x": {}}'
      where kind = %s
    """
    db.execute(edit, (kind,))

    assert "chain" in found(verify(address))
    assert life


@pytest.mark.parametrize(
    "edit",
    [
        "digests = '{null,null,null}'",
        "attempts = '{}'",
        "moves = '{null}'",
        "runs = runs || null::uuid",
        "data = '[]'",
        """data = '{"x": 1}'""",
    ],
)
@pytest.mark.parametrize("kind", ["Claimed", "Signalled", "StepStored"])
def test_events_that_no_statement_writes_are_found(
    db: Db, address: DatabaseAddress, life: dict[str, str], *, kind: str, edit: str
) -> None:
    """A log that is full of nonsense is reported, and stops nothing."""
    text = f"update byrote_events set {edit} where kind = %s"  # noqa: S608 -- ours.
    assert db.execute(text, (kind,)).rowcount >= 1  # type: ignore[call-overload]
    report = verify(address)

    assert any("malformed" in finding.message for finding in report.findings) or (
        # Such arrays are as long as its runs, of which it has none.
        (kind, edit) == ("StepStored", "attempts = '{}'")
    )
    assert life


def test_everything_of_a_mixed_life_is_covered(
    db: Db, address: DatabaseAddress, clock: FakeClock, life: dict[str, str]
) -> None:
    walker = Walker(db, clock, 77)
    for _ in range(150):
        walker.step()
    report = verify(address)

    assert (report.findings, report.uncovered) == ([], 0)
    assert report.runs == len(life) + len(walker.ids)


@pytest.mark.parametrize(
    "statement",
    [
        "enqueue",
        "enqueue_one",
        "enqueue_unique",
        "enqueue_memo",
        "replay",
        "shadow",
        "verify_later",
    ],
)
def test_every_statement_that_accepts_a_run_logs_the_hash_of_its_spec(
    db: Db, address: DatabaseAddress, statement: str
) -> None:
    [original] = enqueue(db)
    finish(db, [success(lease) for lease in claim(db)])
    run_id, made = new_id(), describe("t", 1, [], {"x": 1}, delivery=Delivery())
    asked: dict[str, Query[object]] = {
        "enqueue": queries.enqueue([(run_id, made)]),
        "enqueue_one": queries.enqueue_one(run_id, made),
        "enqueue_unique": enqueue_unique([(run_id, made)]),
        "enqueue_memo": enqueue_memo([(run_id, made)], {}),
        "replay": queries.replay(original=original, id=run_id),
        "shadow": queries.shadow([(run_id, original)], queue="shadow"),
        "verify_later": queries.enqueue_verification(run_id, made, original=original),
    }  # type: ignore[dict-item]  # Their rows are not read.
    fetch(db, asked[statement])
    report = verify(address)

    assert (report.runs, report.uncovered, report.findings) == (2, 0, [])


AS_BEFORE = """
delete from byrote_events where kind in ('StepStored', 'ArtifactStored');
update byrote_events set digests = null, data = null, schema = 1 where kind = 'Signalled';
update byrote_events set digests = null, schema = case kind when 'Claimed' then 1 else 2 end
where kind <> 'Signalled';
"""
"""Makes the log what it was before it had hashes."""


def test_runs_from_before_the_log_had_hashes_are_not_covered_and_no_fault(
    db: Db, address: DatabaseAddress, life: dict[str, str]
) -> None:
    db.execute(AS_BEFORE)
    report = verify(address)
    assert (report.findings, report.uncovered) == ([], len(life))
    enqueue(db)

    assert verify(address).uncovered == len(life)
