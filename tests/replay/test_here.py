# SPDX-License-Identifier: MIT
"""`app.replay`: runs executed again in this process, in shadow runs, and compared."""

import pytest

from byrote import App, Differs, NotReplayable, Same, Status
from byrote.assembly.identity import new_id
from byrote.core.errors import BadOption, RunNotFound
from byrote.core.json.diff import Change
from byrote.core.replay.verdict import Replayed
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.replay.conftest import Execute
from tests.support import Db, count, row_of, run_of
from tests.tasks import replayed
from tests.tasks.replayed import NOW as RETRY
from tests.worker.harness import Marks


def refused(verdict: Replayed) -> NotReplayable:
    assert isinstance(verdict, NotReplayable)
    return verdict


def test_the_same_code_returns_the_same_and_leaves_the_original_unchanged(
    db: Db, execute: Execute, here: App
) -> None:
    [run] = execute(("price", [99]))
    before = row_of(db, run.id)
    verdict = here.replay(run.id)

    assert isinstance(verdict, Same)
    assert (verdict.original, verdict.task, verdict.hash) == (run.id, "price@1", run.result_hash)
    assert row_of(db, run.id) == before
    shadow = run_of(db, verdict.replay)
    assert (shadow.shadow, shadow.replay_of, shadow.result_hash) == (True, run.id, run.result_hash)
    assert [row.id for row in fetch(db, queries.replays(run.id))] == [shadow.id]
    assert count(db, "byrote_workers") == 0


def test_changed_code_differs_and_diff_and_provenance_show_where(
    execute: Execute, changed: App
) -> None:
    [run] = execute(("price", [99]))
    verdict = changed.replay(run.spec_hash)

    assert isinstance(verdict, Differs)
    assert verdict.result.changes == [Change("/tax", "changed", 18, 19)]
    assert "/code/function" in {change.path for change in verdict.provenance.changes}


def test_an_attempt_believes_it_is_the_originals_last(execute: Execute, here: App) -> None:
    """Id, queue, attempt, labels, time, seed and chance are those of the attempt that counts."""
    labels = {"order": "7"}
    [run] = execute(("identity", []), retry=RETRY, labels=labels)
    verdict = here.replay(run.id)

    assert run.result[:4] == [run.id, "default", 3, labels]
    assert isinstance(verdict, Same)


def test_a_task_that_had_stepped_aside_is_repeated_from_where_it_ended(
    execute: Execute, here: App, changed: App
) -> None:
    [run] = execute(("polite", []))
    verdict = changed.replay(run.id)

    assert isinstance(here.replay(run.id), Same)
    assert isinstance(verdict, Differs)
    assert verdict.status == (Status.SUCCESSFUL, Status.FAILED)


def test_of_a_failure_class_and_message_are_compared(
    execute: Execute, here: App, changed: App
) -> None:
    [run] = execute(("hopeless", [5]))
    verdict = changed.replay(run.id)

    assert isinstance(here.replay(run.id), Same)
    assert isinstance(verdict, Differs)
    assert [change.path for change in verdict.result.changes] == ["/message"]


def test_what_is_not_the_codes_fault_can_be_ignored(execute: Execute, here: App) -> None:
    """By the caller, or once and for all where the task is defined."""
    plain, told = execute(("wall_clock", [1]), ("wall_clock_ignored", [1]))

    assert isinstance(here.replay(plain.id), Differs)
    assert isinstance(here.replay(plain.id, ignore=["$.at"]), Same)
    assert isinstance(here.replay(told.id), Same)


def test_the_runs_of_a_task_are_replayed_together(
    execute: Execute, here: App, changed: App
) -> None:
    execute(*(("price", [net]) for net in range(90, 100)), ("a_price", [1]))
    same = here.replay(task="price", jobs=3)
    mixed = changed.replay(task="price", last=4, jobs=2)

    assert [type(verdict) for verdict in same] == [Same] * 10
    assert len({verdict.original for verdict in same}) == 10
    assert {type(verdict) for verdict in mixed} == {Same, Differs}
    assert len(mixed) == 4
    assert here.replay(task="price", failed=True) == []
    assert len(here.replay(task="price", since="1h")) == 10


def test_a_hash_means_the_newest_run_that_has_ended(execute: Execute, here: App) -> None:
    [run] = execute(("price", [99]))
    [waiting] = execute(("price", [99]), run_after="1h")
    verdict = here.replay(run.spec_hash)

    assert waiting.spec_hash == run.spec_hash
    assert isinstance(verdict, Same)
    assert verdict.original == run.id


def test_unknown_code_is_named(execute: Execute, changed: App) -> None:
    [old] = execute(("versioned", [1]), version=2)
    [gone] = execute(("retired", [1]))

    assert refused(changed.replay(old.id)).why == "unknown_version"
    assert "versioned@3" in refused(changed.replay(old.id)).reason
    assert refused(changed.replay(gone.id)).why == "unknown_task"


def test_an_altered_spec_is_refused_by_its_hash(db: Db, execute: Execute, here: App) -> None:
    [run] = execute(("price", [99]))
    db.execute("update byrote_task_runs set spec_json = replace(spec_json, '99', '98')")
    verdict = refused(here.replay(run.id))

    assert (verdict.why, verdict.replay) == ("altered", None)
    assert fetch(db, queries.replays(run.id)) == []


def test_an_altered_step_is_refused_by_its_hash(
    db: Db, execute: Execute, here: App, marks: Marks
) -> None:
    [run] = execute(("more_steps", [marks.path]))
    db.execute("update byrote_steps set result_json = '2'")

    assert refused(here.replay(run.id)).why == "altered"


def test_what_has_not_ended_or_is_gone_has_nothing_to_compare(
    db: Db, execute: Execute, here: App
) -> None:
    [run] = execute(("price", [99]))
    [waiting] = execute(("price", [99]), run_after="1h")
    shadow = here.replay(run.id)
    assert isinstance(shadow, Same)

    assert refused(here.replay(waiting.id)).why == "unfinished"
    assert refused(here.replay(shadow.replay)).why == "shadow"
    fetch(db, queries.cancel([waiting.id]))
    assert refused(here.replay(waiting.id)).why == "cancelled"
    db.execute("delete from byrote_task_runs where result_id = %s", (run.id,))
    assert refused(here.replay(run.id)).why == "expired"
    with pytest.raises(RunNotFound):
        here.replay(new_id())


def test_bad_wishes_are_refused_before_anything_runs(db: Db, here: App) -> None:
    for which, options in [
        ("frob", {}),
        (None, {}),
        ("0" * 64, {"task": "price"}),
        (None, {"task": "price", "jobs": 0}),
        (None, {"task": "price", "ignore": ["at"]}),
        (None, {"task": "price", "last": 0}),
    ]:
        with pytest.raises(BadOption):
            here.replay(which, **options)  # type: ignore[call-overload]
    assert count(db, "byrote_events") == 0


def test_a_shadow_run_uses_and_fills_no_memo(db: Db, execute: Execute, here: App) -> None:
    [run] = execute((replayed.kept.name, [1]))
    answered = replayed.kept.enqueue(1).refresh()
    db.execute("delete from byrote_memo")
    verdict = here.replay(answered.id)

    assert answered.memo_of == run.id
    assert isinstance(verdict, Same)
    assert (verdict.original, verdict.memo_of) == (answered.id, run.id)
    assert here.replay(run.id).memo_of is None
    assert len(here.replay(task=replayed.kept.name)) == 1
    assert count(db, "byrote_memo") == 0
