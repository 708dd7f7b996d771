# SPDX-License-Identifier: MIT
"""A bare success has a separate statement, which does what finish.sql does with it."""

from typing import Any

import pytest

from byrote.assembly.identity import new_token
from byrote.core.outcome import Output, Succeeded
from byrote.core.policy import Retry, judge
from byrote.core.run import Leased
from byrote.core.state import Status
from byrote.core.verdict import Judged, is_bare
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.link import WorkerConnection
from byrote.store.runners.sync import fetch
from byrote.store.worker import FinishStore
from byrote.testing import FakeClock
from tests.support import Db, claim, count, enqueue, finish, row_of, run_of, success, verdict

RESULT = '{"a":[1.0,"é\\u0000"]}'
OWN = {"result_id", "spec_json", "spec_hash", "lease_token"}


type Entry = tuple[str, str, int, str, str, dict[str, int] | None]


def entry(lease: Leased, usage: dict[str, int] | None = None, **changed: Any) -> Entry:
    sent = {**success(lease, RESULT), "attempt": lease.attempt, **changed}
    return sent["id"], sent["token"], sent["attempt"], sent["result"], sent["hash"], usage


def succeed(db: Db, *entries: Entry) -> list[str]:
    return [run_id for run_id, _ in fetch(db, queries.succeed(entries, provenance=7))]


def events(db: Db, run_id: str) -> list[tuple[Any, ...]]:
    text = """
      select schema, at, kind, worker, attempts, moves, digests, data, lease_token is null
      from byrote_events where %s = any (runs) order by seq
    """
    return db.execute(text, (run_id,)).fetchall()


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("usage", [None, {"attempt": 3, "wall_us": 1500}], ids=["short", "long"])
@pytest.mark.parametrize("cancelled", [False, True], ids=["wanted", "cancelled meanwhile"])
def test_it_leaves_the_same_row_and_the_same_event_as_finish(
    db: Db, clock: FakeClock, *, attempts: int, usage: dict[str, int] | None, cancelled: bool
) -> None:
    ids = enqueue(db, 2, retry=Retry(attempts=3))
    more = {} if usage is None else {"more": {"usage": usage}}
    for _ in range(attempts - 1):
        finish(db, [verdict(lease, "R", delay_us=0, **more) for lease in claim(db, 2)])
        clock.advance(seconds=1)
    first, second = claim(db, 2)
    if cancelled:
        fetch(db, queries.cancel(ids))
    clock.advance(seconds=1)
    said = {**success(first, RESULT), "attempt": attempts, **more}
    fetch(db, queries.finish([said], provenance=7))

    assert succeed(db, entry(second, usage)) == [second.id]
    ours, theirs = (row_of(db, lease.id) for lease in (second, first))
    alike = ours.keys() - OWN - {"rank", "run_after", "enqueued_at"}
    assert {name: ours[name] for name in alike} == {name: theirs[name] for name in alike}
    assert events(db, second.id)[-1] == events(db, first.id)[-1]
    assert run_of(db, second.id).result == {"a": [1.0, "é\x00"]}


@pytest.mark.parametrize("how", ["stranger", "expired", "settled", "lost"])
def test_only_the_holder_of_a_live_lease_can_finish(db: Db, clock: FakeClock, how: str) -> None:
    """P3."""
    [run_id] = enqueue(db)
    [lease] = claim(db)
    sent = entry(lease, token=new_token()) if how == "stranger" else entry(lease)
    if how == "expired":
        clock.advance(seconds=30)
    if how == "settled":
        finish(db, [success(lease, "1")])
    if how == "lost":
        clock.advance(seconds=31)
        fetch(db, queries.sweep())
    told = count(db, "byrote_events")

    assert succeed(db, sent) == []
    assert run_of(db, run_id).result in (None, 1)
    assert count(db, "byrote_events") == told


def test_a_line_settles_what_is_bare_and_what_is_not_in_one_go(
    db: Db, address: DatabaseAddress
) -> None:
    enqueue(db, 3)
    judged: list[Judged] = []
    for lease, output in zip(claim(db, 3), [None, Output("said"), None], strict=True):
        sent = success(lease, RESULT)
        outcome = Succeeded(sent["result"], sent["hash"], output)
        judged.append((lease, outcome, judge(lease, outcome)))
    link = WorkerConnection(
        address, "test", jitter=lambda: 0.5, stopped=lambda _s: False, notice=lambda *_: None
    )
    line = FinishStore(link)

    assert [is_bare(*entry) for entry in judged] == [True, False, True]
    assert line.finish(judged) == {run.id: "S" for run, _, _ in judged}
    assert {run_of(db, run.id).status for run, _, _ in judged} == {Status.SUCCESSFUL}
    assert count(db, "byrote_outputs") == 1
    line.close()
