# SPDX-License-Identifier: MIT
"""The diaries against the database: every way to disagree is noticed."""

from pathlib import Path

import pytest
from msgspec import json

from byrote.core.state import Status
from byrote.lab.torture.diary import lines, note, read
from byrote.lab.torture.judgement import Judgement, gather, judge
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.support import Db, claim, enqueue, finish, run_of, success, verdict

ATTEMPT_1 = '{"attempt":1}'


class Peace:
    """Runs that went well, by the diaries and by the database."""

    def __init__(self, db: Db, folder: Path) -> None:
        self.db, self.folder = db, folder
        self.ids = enqueue(db, 3, task="torture.quick")
        note(folder, "producer", "ok", ids=self.ids)
        leases = claim(db, 3, tasks=["torture.quick@1"])
        for lease in leases:
            note(folder, "hand", "start", run=lease.id, attempt=1)
        finish(db, [success(lease, ATTEMPT_1) for lease in leases[:2]])
        finish(db, [verdict(leases[2], "F")])
        self.log = folder / "worker.log"
        self.log.write_text(f'{{"event":"Succeeded","run":"{self.ids[0]}","attempt":1}}\n')

    def judged(self) -> Judgement:
        return judge(self.db, gather(self.folder, [self.log]))

    @property
    def kinds(self) -> list[str]:
        return [violation.kind for violation in self.judged().violations]


@pytest.fixture
def peace(db: Db, tmp_path: Path) -> Peace:
    return Peace(db, tmp_path)


def test_what_went_well_is_in_order(peace: Peace) -> None:
    judged = peace.judged()

    assert judged.violations == []
    assert judged.by_status == {"SUCCESSFUL": 2, "FAILED": 1}
    assert (judged.executions, judged.again) == (3, 0)


def test_an_acknowledged_run_that_is_gone_is_noticed(peace: Peace) -> None:
    note(peace.folder, "producer", "ok", ids=["01932c4e-8d5b-7a90-b1c2-3d4e5f607182"])

    assert peace.kinds == ["lost"]


def test_an_unanswered_enqueue_may_have_happened_or_not(peace: Peace) -> None:
    note(peace.folder, "producer", "unknown", ids=["01932c4e-8d5b-7a90-b1c2-3d4e5f607182"])

    assert peace.kinds == []


def test_what_an_asynchronous_failover_lost_is_counted_apart(peace: Peace) -> None:
    note(peace.folder, "producer", "ok", ids=["01932c4e-8d5b-7a90-b1c2-3d4e5f607182"])
    [line] = [at for at in read(peace.folder, "producer") if len(at["ids"]) == 1]
    note(peace.folder, "nemesis", "fault", kind="failover_async", shown={"t": line["t"] + 1})

    assert (peace.kinds, peace.judged().lost_in_tail) == ([], 1)


def test_a_refused_run_that_is_there_is_noticed(peace: Peace) -> None:
    note(peace.folder, "producer", "fail", ids=peace.ids[:1])

    assert peace.kinds == ["ghost"]


def test_a_second_run_of_one_key_is_noticed(peace: Peace) -> None:
    note(peace.folder, "nemesis", "keyed", twice=peace.ids[:1])

    assert peace.kinds == ["keyed"]


def test_a_run_that_never_ended_is_noticed(peace: Peace) -> None:
    enqueue(peace.db, task="torture.quick")

    assert peace.kinds == ["stuck"]


@pytest.mark.parametrize("result", ['{"attempt":2}', '{"attempt":1,"zombie":true}'])
def test_a_result_by_a_stranger_is_noticed(peace: Peace, result: str) -> None:
    text = "update byrote_task_runs set return_json = %s where result_id = %s"
    peace.db.execute(text, (result, peace.ids[0]))

    assert peace.kinds == ["stranger"]


def test_a_result_without_an_attempt_is_noticed(peace: Peace) -> None:
    [run_id] = enqueue(peace.db, task="torture.quick")
    finish(peace.db, [success(claim(peace.db, tasks=["torture.quick@1"])[0], ATTEMPT_1)])

    assert run_of(peace.db, run_id).status is Status.SUCCESSFUL
    assert peace.kinds == ["invented"]


def test_an_attempt_that_was_executed_twice_is_noticed(peace: Peace) -> None:
    note(peace.folder, "hand", "start", run=peace.ids[0], attempt=1)

    assert peace.kinds == ["twice"]


def test_an_asynchronous_failover_excuses_only_what_it_may_have_undone(peace: Peace) -> None:
    """Twice in its shadow is what it did; twice at another time is ours."""
    note(peace.folder, "hand", "start", run=peace.ids[0], attempt=1)
    [*_, line] = read(peace.folder, "hand")
    for seconds, kinds in ((1.0, []), (600.0, ["twice"])):
        shown = {"t": line["t"] + seconds}
        note(peace.folder, f"nemesis-{seconds}", "fault", kind="failover_async", shown=shown)
        assert peace.kinds == kinds
        for path in peace.folder.glob("nemesis*"):
            path.write_text("")


def test_a_report_that_was_accepted_and_is_gone_is_noticed(peace: Peace) -> None:
    text = "update byrote_task_runs set status = 'CANCELLED' where result_id = %s"
    peace.db.execute(text, (peace.ids[0],))

    assert peace.kinds == ["forgotten"]


def logged(peace: Peace, event: str, run_id: str, attempt: int = 1) -> None:
    line = {"event": event, "run": run_id, "attempt": attempt, "worker": "w"}
    with peace.log.open("ab") as log:
        log.write(json.encode(line) + b"\n")


def test_a_report_that_was_never_committed_is_noticed(peace: Peace) -> None:
    logged(peace, "Retried", peace.ids[2])

    assert peace.kinds == ["unwritten"]


def test_a_success_that_two_workers_believe_is_noticed(peace: Peace) -> None:
    logged(peace, "Succeeded", peace.ids[0])

    assert peace.kinds == ["believed_twice"]


def test_a_lease_that_is_called_lost_though_its_attempt_was_settled_is_noticed(
    peace: Peace,
) -> None:
    logged(peace, "LeaseRefused", peace.ids[1])
    logged(peace, "LeaseRefused", peace.ids[2], attempt=2)

    assert peace.kinds == ["misreported"]


def test_a_failure_by_a_sweep_is_not_taken_for_a_word_of_the_holder(peace: Peace) -> None:
    [run_id] = enqueue(peace.db, task="torture.quick")
    claim(peace.db, tasks=["torture.quick@1"])
    text = """update byrote_task_runs
              set losses = 9, leased_until = byrote_now() - interval '1 s' where result_id = %s"""
    peace.db.execute(text, (run_id,))
    fetch(peace.db, queries.sweep())
    logged(peace, "LeaseRefused", run_id)

    assert run_of(peace.db, run_id).status is Status.FAILED
    assert peace.kinds == []


def test_a_line_torn_by_a_kill_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    path.write_bytes(b'{"what":"ok"}\nnoise\n{"what":}\n{"what":"o')

    assert list(lines(path)) == [{"what": "ok"}]
