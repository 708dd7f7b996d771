# SPDX-License-Identifier: MIT
import pytest

from byrote.assembly.identity import new_id
from byrote.core.policy import Retry
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.support import Db, claim, count, enqueue, finish, history, run_of, success, verdict

START = "00000000-0000-0000-0000-000000000000"


def end(db: Db, clock: FakeClock, where: str) -> None:
    """Bring the only run into the requested table."""
    if where == "ready":
        return
    [lease] = claim(db, queues=["default", "q"])
    finish(db, [verdict(lease, "F") if where == "dead" else success(lease, "1")])
    if where == "archive":
        clock.advance(hours=2)
        fetch(db, queries.archive(after=START))
        assert count(db, "byrote_archive") == 1


@pytest.mark.parametrize("where", ["ready", "hot", "archive", "dead"])
def test_a_replay_is_a_new_run_of_the_very_same_spec(db: Db, clock: FakeClock, where: str) -> None:
    policy = Retry(attempts=3)
    [original] = enqueue(db, queue="q", priority=5, retry=policy, labels={"a": "b"})
    end(db, clock, where)
    clock.advance(minutes=1)
    fresh = new_id()

    assert fetch(db, queries.replay(original=original, id=fresh)) == [fresh]
    run, old = run_of(db, fresh), run_of(db, original)
    assert run.replay_of == original
    assert (run.spec_json, run.spec_hash) == (old.spec_json, old.spec_hash)
    assert (run.status, run.attempts, run.charged) == (Status.READY, 0, 0)
    assert (run.queue, run.priority, run.max_attempts) == ("q", 5, 3)
    assert run.labels == {"a": "b", "byrote.seed": original}
    assert (run.run_after, run.result_json, run.faults) == (clock.now, None, [])
    assert history(db, fresh) == ["Enqueued"]


def test_an_unknown_run_is_not_replayed(db: Db) -> None:
    assert fetch(db, queries.replay(original=new_id(), id=new_id())) == []
    assert count(db, "byrote_runs") == count(db, "byrote_events") == 0


@pytest.mark.parametrize("where", ["ready", "hot", "archive", "dead"])
def test_a_run_is_found_by_its_hash_in_every_table(db: Db, clock: FakeClock, where: str) -> None:
    [run_id] = enqueue(db)
    end(db, clock, where)
    spec_hash = run_of(db, run_id).spec_hash

    assert fetch(db, queries.latest_by_hash(spec_hash)) == [run_id]
    assert fetch(db, queries.latest_by_hash("00" * 32)) == []


def test_the_newest_of_several_runs_with_a_hash_is_found(db: Db, clock: FakeClock) -> None:
    spec = describe("t", 1, [1], {}, delivery=Delivery())
    ids = [new_id() for _ in range(3)]
    for run_id, where in zip(ids, ["archive", "dead", "ready"], strict=True):
        fetch(db, queries.enqueue([(run_id, spec)]))
        end(db, clock, where)
        clock.advance(seconds=1)
        assert fetch(db, queries.latest_by_hash(spec.digest.hex())) == [run_id]
