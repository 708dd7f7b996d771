# SPDX-License-Identifier: MIT
"""What every store promises a worker's parts, run on PostgreSQL and on the service."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import chance, new_id, new_token
from byrote.core.codec import pack
from byrote.core.errors import StoreRefused
from byrote.core.judged import Judged
from byrote.core.outcome import (
    Cancelled,
    Disrupted,
    Failed,
    Fault,
    Outcome,
    Output,
    Released,
    Snoozed,
    Succeeded,
)
from byrote.core.policy import Retry, judge
from byrote.core.ports import Leases, Ledgers, Line, Roll, Store, Verdicts, Wanted
from byrote.core.provenance import provenance_of
from byrote.core.run import Leased
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status
from byrote.sdk.doorway import Doorway
from byrote.sdk.lines import ServiceLines
from byrote.store import queries
from byrote.store.connect import Door
from byrote.store.lines import Lines
from byrote.store.sync import fetch
from tests.faults.proxy import HttpProxy, Proxy
from tests.sdk.harness import ServiceProcess, new_service_token
from tests.support import count, enqueue, history, run_of

type Db = psycopg.Connection[Any]

LEASE = timedelta(seconds=30)
WORDS = {
    "postgres": {
        "claim": "set status = 'RUNNING'",
        "renew": "'Renewed'",
        "finish": "as sent (\n    id uuid, token uuid, verdict",
        "note": "insert into byrote_steps",
    },
    "http": {
        "claim": "POST /v1/leases ",
        "renew": "POST /v1/leases/renew",
        "finish": "POST /v1/leases/finish",
        "note": "POST /v1/leases/steps",
    },
}
NO = Fault("raised", "ValueError", "no")


class Desk:
    """A store, and a line of each kind to it."""

    def __init__(self, store: Store, kind: str, proxy: Proxy) -> None:
        self.kind = kind
        self.proxy = proxy
        self.store = store
        self.heard: list[tuple[str, str | None]] = []
        self.leases: Leases = store.leases(self._line("claim"), on_cancel=lambda: None)
        self.verdicts: Verdicts = store.verdicts(self._line("finish"))
        self.roll: Roll = store.roll(self._line("renew"))
        self.ledgers: Ledgers = store.ledgers(self._line("steps"))

    def _line(self, purpose: str) -> Line:
        stopped = threading.Event().wait
        return Line(purpose, stopped, lambda *said: self.heard.append(said), chance)

    def break_next(self, verb: str, moment: Any) -> Any:
        """Have the next exchange of this verb break."""
        return self.proxy.plan(WORDS[self.kind][verb], moment)

    def claim(
        self,
        limit: int = 1,
        *,
        queues: Sequence[str] = ("default",),
        tasks: Sequence[str] = ("t@1",),
        worker: str = "w",
    ) -> list[Leased]:
        """Lease up to so many runs of each queue."""
        before = monotonic()
        quotas = dict.fromkeys(queues, limit)
        wanted = Wanted(quotas, tasks, worker, new_token(), LEASE, before + 27, before, {})
        found = self.leases.claim(wanted)
        return self.claim(limit, queues=queues, tasks=tasks) if found is None else found

    def finish(self, lease: Leased, outcome: Outcome) -> str | None:
        """Tell how an attempt ended; as what it was heard."""
        return self.verdicts.finish([judged(lease, outcome)]).get(lease.id)

    def close(self) -> None:
        """Leave."""
        for line in (self.leases, self.verdicts, self.roll, self.ledgers):
            line.close()
        self.proxy.close()


def judged(lease: Leased, outcome: Outcome) -> Judged:
    return lease, outcome, judge(lease, outcome)


def returned(value: Any) -> Succeeded:
    packed = pack(value)
    return Succeeded(packed.text, packed.digest.hex())


@pytest.fixture(params=["postgres", "http"])
def desk(
    request: pytest.FixtureRequest, url: str, db: Db, module_service: ServiceProcess
) -> Iterator[Desk]:
    """Each store in turn, behind a proxy that can break its exchanges."""
    if request.param == "http":
        proxy: Proxy = HttpProxy(module_service.port)
        door = Doorway(proxy.url, new_service_token(db, "work"))
        made = Desk(ServiceLines(door), "http", proxy)
    else:
        proxy = Proxy(url)
        made = Desk(Lines(Door(proxy.url)), "postgres", proxy)
    yield made
    made.close()


def expire(db: Db, run_id: str) -> None:
    """Let a lease run out, and have it swept."""
    past = "set leased_until = byrote_now() - interval '1 s'"
    db.execute(f"update byrote_task_runs {past} where result_id = %s", (run_id,))  # type: ignore[call-overload]
    fetch(db, queries.sweep())


def test_it_can_be_worked_with(desk: Desk) -> None:
    desk.store.check()


# -- Claim -----------------------------------------------------------------------------------------


def test_a_claim_gives_no_more_than_was_asked_for(desk: Desk, db: Db) -> None:
    enqueue(db, 5)
    first, second = desk.claim(3), desk.claim(3)

    assert (len(first), len(second), len(desk.claim(3))) == (3, 2, 0)
    assert len({lease.id for lease in first + second}) == 5


def test_a_claim_gives_only_the_queues_and_tasks_that_were_asked_for(desk: Desk, db: Db) -> None:
    [wanted] = enqueue(db, queue="a")
    [elsewhere] = enqueue(db, queue="b")
    [unknown] = enqueue(db, task="u", queue="a")
    [newer] = enqueue(db, version=2, queue="a")

    assert [lease.id for lease in desk.claim(9, queues=["a"])] == [wanted]
    for left in (elsewhere, unknown, newer):
        assert run_of(db, left).status is Status.READY


def test_a_claim_gives_each_queue_its_quota(desk: Desk, db: Db) -> None:
    enqueue(db, 5, queue="a")
    enqueue(db, 5, queue="b")
    found = desk.claim(2, queues=["a", "b"])

    assert sorted(lease.queue for lease in found) == ["a", "a", "b", "b"]


def test_what_is_urgent_comes_first(desk: Desk, db: Db) -> None:
    [low], [high] = enqueue(db, priority=-1), enqueue(db, priority=1)

    assert [lease.id for lease in desk.claim(2)] == [high, low]


def test_a_lease_brings_everything_an_attempt_needs(desk: Desk, db: Db) -> None:
    how = Delivery(
        timeout=timedelta(seconds=2),
        retry=Retry(attempts=3, delay_first=timedelta(seconds=7)),
        labels={"order": "42"},
        traceparent="00-1-2-01",
    )
    spec = describe("t", 1, [1.0, -0.0, 2**70, "ä"], {"k": None}, delivery=how)
    fetch(db, queries.enqueue([(new_id(), spec)]))
    [lease] = desk.claim()

    assert (lease.task, lease.version, lease.spec_json) == ("t", 1, spec.text)
    assert (lease.spec_hash, lease.attempt, lease.charged, lease.losses) == (spec.digest, 1, 0, 0)
    assert (lease.max_attempts, lease.timeout_ms, lease.traceparent) == (3, 2000, "00-1-2-01")
    assert lease.labels_json is not None
    assert '"order"' in lease.labels_json
    assert lease.retry_json is not None
    assert "PT7S" in lease.retry_json
    assert lease.as_of_us > 1_500_000_000_000_000


def test_a_run_without_options_has_none(desk: Desk, db: Db) -> None:
    enqueue(db)
    [lease] = desk.claim()

    assert (lease.timeout_ms, lease.retry_json, lease.labels_json) == (None, None, None)


def test_nothing_is_claimed_from_a_paused_queue(desk: Desk, db: Db) -> None:
    enqueue(db)
    fetch(db, queries.pause("default"))

    assert desk.claim() == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_claim_whose_answer_is_lost_leases_once(desk: Desk, db: Db, moment: str) -> None:
    desk.claim()
    [run_id] = enqueue(db)
    fault = desk.break_next("claim", moment)
    [lease] = desk.claim()

    assert fault.happened.is_set()
    assert (lease.id, lease.attempt) == (run_id, 1)
    assert desk.finish(lease, returned(1)) == "S"
    assert history(db, run_id) == ["Enqueued", "Claimed", "Succeeded"]


def test_a_rest_ends_when_somebody_makes_room(desk: Desk) -> None:
    desk.claim()
    wake = os.eventfd(0)
    os.eventfd_write(wake, 1)
    began = monotonic()
    desk.leases.rest(wake, 30, for_room=True)
    os.close(wake)

    assert monotonic() - began < 20


def test_something_due_is_unfinished(desk: Desk, db: Db) -> None:
    def unfinished() -> bool:
        return desk.leases.unfinished(queues=["default"], tasks=["t@1"])

    assert not unfinished()
    enqueue(db)
    assert unfinished()
    [lease] = desk.claim()
    desk.finish(lease, returned(None))
    assert not unfinished()


# -- Finish ----------------------------------------------------------------------------------------

ENDS: dict[str, tuple[Callable[[], Outcome], Status, int, int]] = {
    "S": (lambda: returned({"a": 1.0}), Status.SUCCESSFUL, 1, 0),
    "R": (lambda: Failed(NO, after=timedelta(hours=1)), Status.WAITING, 1, 0),
    "F": (lambda: Failed(NO, final=True), Status.FAILED, 1, 0),
    "C": (Cancelled, Status.CANCELLED, 0, 0),
    "Z": (lambda: Snoozed(timedelta(hours=1)), Status.WAITING, 0, 0),
    "L": (Released, Status.READY, 0, 0),
    "X": (lambda: Disrupted(NO), Status.READY, 0, 1),
}


@pytest.mark.parametrize("letter", ENDS)
def test_every_way_to_end_leads_where_it_should(desk: Desk, db: Db, letter: str) -> None:
    outcome, status, charged, losses = ENDS[letter]
    [run_id] = enqueue(db, retry=Retry(attempts=2))
    [lease] = desk.claim()

    assert desk.finish(lease, outcome()) == letter
    run = run_of(db, run_id)
    assert (run.status, run.attempts, run.charged, run.losses) == (status, 1, charged, losses)


def test_a_result_is_kept_to_the_letter(desk: Desk, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = desk.claim()
    value = {"b": [1.0, -0.0, 2**70], "a": "\x00ä", "n": None}
    desk.finish(lease, returned(value))
    run = run_of(db, run_id)

    assert (run.result_json, run.result_hash) == (pack(value).text, pack(value).digest.hex())


def test_an_error_is_kept_with_its_attempt_and_worker(desk: Desk, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = desk.claim()
    fault = Fault("raised", "shop.Broke", "nope", "Traceback …", attempt=1, worker="w", exit_code=3)
    desk.finish(lease, Failed(fault))
    [kept] = run_of(db, run_id).faults

    assert (kept["type"], kept["traceback"], kept["exit_code"]) == ("shop.Broke", "Traceback …", 3)
    assert (kept["attempt"], kept["worker"]) == (1, "w")
    assert kept["message"] == "nope"


def test_what_was_printed_used_and_executed_is_kept(desk: Desk, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = desk.claim()
    lease.provenance = provenance_of({"python": {"version": "3"}})
    packed = pack(1)
    output, usage = Output(stdout="hello"), {"wall_us": 5}
    desk.finish(lease, Succeeded(packed.text, packed.digest.hex(), output, usage))
    run = run_of(db, run_id)

    assert [printed.stdout for printed in fetch(db, queries.outputs(run_id))] == ["hello"]
    assert run.usage == [{"attempt": 1, "wall_us": 5}]
    assert run.provenance == [lease.provenance.id]
    assert count(db, "byrote_provenance") == 1


def test_a_batch_settles_each_on_its_own(desk: Desk, db: Db) -> None:
    enqueue(db, 3)
    one, two, three = desk.claim(3)
    expire(db, two.id)
    batch = [judged(one, returned(1)), judged(two, returned(2)), judged(three, Failed(NO))]

    assert desk.verdicts.finish(batch) == {one.id: "S", three.id: "F"}


def test_a_worker_that_lost_its_lease_is_not_heard(desk: Desk, db: Db) -> None:
    [run_id] = enqueue(db)
    [late] = desk.claim()
    expire(db, run_id)
    [current] = desk.claim()

    assert desk.finish(late, returned("late")) is None
    assert desk.finish(late, Failed(NO)) is None
    assert run_of(db, run_id).status is Status.RUNNING
    assert desk.finish(current, returned("right")) == "S"
    assert run_of(db, run_id).result == "right"


def test_a_run_somebody_wants_cancelled_does_not_come_back(desk: Desk, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = desk.claim()
    fetch(db, queries.cancel([run_id]))

    assert desk.finish(lease, Released()) == "C"
    assert run_of(db, run_id).status is Status.CANCELLED


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_finish_whose_answer_is_lost_settles_once(desk: Desk, db: Db, moment: str) -> None:
    warm, run_id = enqueue(db, 2)
    first, second = desk.claim(2)
    desk.finish(first, returned(0))
    fault = desk.break_next("finish", moment)

    assert (first.id, second.id) == (warm, run_id)
    assert desk.finish(second, returned(1)) == "S"
    assert fault.happened.is_set()
    assert history(db, run_id) == ["Enqueued", "Claimed", "Succeeded"]
    assert {what for what, _ in desk.heard} == {"finish"}
    assert desk.heard[-1] == ("finish", None)


def test_what_will_never_be_taken_is_refused(desk: Desk, db: Db) -> None:
    enqueue(db)
    [lease] = desk.claim()
    lease.token = "no token"  # noqa: S105 -- that is the point.

    with pytest.raises(StoreRefused):
        desk.finish(lease, returned(1))


# -- Renew -----------------------------------------------------------------------------------------


def test_a_renewal_holds_what_is_held_and_nothing_else(desk: Desk, db: Db) -> None:
    enqueue(db, 3)
    held, lost, settled = desk.claim(3)
    expire(db, lost.id)
    desk.finish(settled, returned(1))
    before = run_of(db, held.id).leased_until

    assert desk.roll.renew([held, lost, settled], lease_for=LEASE) == {held.id: False}
    assert run_of(db, held.id).leased_until > before  # type: ignore[operator]
    assert run_of(db, lost.id).status is Status.READY


def test_a_renewal_tells_what_is_not_wanted_any_more(desk: Desk, db: Db) -> None:
    enqueue(db, 2)
    wanted, unwanted = desk.claim(2)
    fetch(db, queries.cancel([unwanted.id]))

    answer = desk.roll.renew([wanted, unwanted], lease_for=LEASE)
    assert answer == {wanted.id: False, unwanted.id: True}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_renewal_whose_answer_is_lost_is_asked_again(desk: Desk, db: Db, moment: str) -> None:
    enqueue(db)
    [lease] = desk.claim()
    desk.roll.renew([lease], lease_for=LEASE)
    fault = desk.break_next("renew", moment)

    assert desk.roll.renew([lease], lease_for=LEASE) == {lease.id: False}
    assert fault.happened.is_set()


# -- The list of workers ---------------------------------------------------------------------------


def test_a_worker_is_on_the_list_until_it_leaves(desk: Desk, db: Db) -> None:
    load = {"idle": True, "stopping": False, "running": 3, "finished": 2**40}
    described = {
        "worker": "w/1", "pid": 7, "hands": 2, "concurrency": 9, "host": "h", "version": "0",
        "python": "3", "queues": ["a", "b"], "tasks": ["t@1"],
    }  # fmt: skip
    assert desk.roll.heartbeat("w/1", load) is False
    desk.roll.register(described)
    assert desk.roll.heartbeat("w/1", load) is True
    [row] = [row for row in fetch(db, queries.workers()) if row.worker == "w/1"]

    assert (row.pid, row.hands, row.concurrency, row.queues) == (7, 2, 9, ["a", "b"])
    assert (row.running, row.finished, row.alive) == (3, 2**40, True)
    desk.roll.deregister("w/1")
    assert desk.roll.heartbeat("w/1", load) is False


# -- Ledgers ---------------------------------------------------------------------------------------


def step(lease: Leased, sequence: int, value: Any) -> dict[str, Any]:
    packed = pack(value)
    return {
        "id": lease.id, "token": lease.token, "sequence": sequence, "kind": "step",
        "name": f"s{sequence}", "result": packed.text, "hash": packed.digest.hex(),
    }  # fmt: skip


def test_a_step_is_written_once_and_read_by_the_next_attempt(desk: Desk, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = desk.claim()
    notes = desk.ledgers.note([step(lease, 1, {"a": 1.0}), step(lease, 2, None)])
    assert [(note.sequence, note.open, note.result_json) for note in notes] == [
        (1, False, '{"a":1.0}'),
        (2, False, "null"),
    ]
    expire(db, run_id)
    [again] = desk.claim()
    lines = desk.ledgers.load([again])

    assert [(line.sequence, line.kind, line.name, line.result_json) for line in lines] == [
        (1, "step", "s1", '{"a":1.0}'),
        (2, "step", "s2", "null"),
    ]


def test_a_step_under_a_lost_lease_is_not_written(desk: Desk, db: Db) -> None:
    [run_id] = enqueue(db)
    [late] = desk.claim()
    expire(db, run_id)
    desk.claim()

    assert desk.ledgers.note([step(late, 1, "late")]) == []
    assert count(db, "byrote_steps") == 0


def test_a_wait_is_open_until_its_signal_comes(desk: Desk, db: Db) -> None:
    enqueue(db)
    [lease] = desk.claim()
    wait = {"id": lease.id, "token": lease.token, "sequence": 1, "kind": "event", "name": "paid"}
    [asked] = desk.ledgers.note([{**wait, "delay_us": None}])
    fetch(db, queries.signal(lease.id, new_id(), "paid", pack(None)))
    [told] = desk.ledgers.note([{**wait, "delay_us": None}])

    assert (asked.open, asked.result_json) == (True, None)
    assert (told.open, told.result_json) == (False, "null")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_step_whose_answer_is_lost_is_written_once(desk: Desk, db: Db, moment: str) -> None:
    enqueue(db)
    [lease] = desk.claim()
    desk.ledgers.note([step(lease, 1, 1)])
    fault = desk.break_next("note", moment)
    [note] = desk.ledgers.note([step(lease, 2, 2)])

    assert fault.happened.is_set()
    assert note.result_json == "2"
    assert count(db, "byrote_steps") == 2
