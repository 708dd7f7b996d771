# SPDX-License-Identifier: MIT
"""Verdicts on replays, without any database."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from byrote.core.json.codec import pack
from byrote.core.json.diff import Change
from byrote.core.json.paths import read_path, read_paths
from byrote.core.ports.replies import StepRow
from byrote.core.replay.verdict import (
    Differs,
    NotReplayable,
    Same,
    hide_values,
    judge_replay,
    obstacle,
)
from byrote.core.run import Run
from byrote.core.spec import Delivery, describe
from byrote.core.state import Status

pytestmark = pytest.mark.pure

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SPEC = describe("shop.charge", 1, [], {"cents": 5}, delivery=Delivery())
DOC = {"code": {"tasks": {"shop.charge@1": {"function": "a", "tree": "shop"}}, "trees": {}}}


def run(result: Any = None, **changes: Any) -> Run:
    packed = pack(result)
    fields: dict[str, Any] = dict.fromkeys(Run.__struct_fields__) | {
        "id": "original",
        "status": Status.SUCCESSFUL,
        "task": SPEC.task,
        "version": SPEC.version,
        "spec_json": SPEC.text,
        "spec_hash": SPEC.digest.hex(),
        "result_json": packed.text,
        "result_hash": packed.digest.hex(),
        "faults": [],
        "as_of": NOW,
        "shadow": False,
    }
    return Run(**fields | changes)


def failed(kind: str = "raised", *, type: str = "ValueError", message: str = "no") -> Run:  # noqa: A002
    fault = {"kind": kind, "type": type, "message": message, "traceback": "differs each time"}
    return run(status=Status.FAILED, faults=[fault], result_json=None, result_hash=None)


def shadow(of: Run) -> Run:
    return msgspec.structs.replace(of, id="shadow", shadow=True, replay_of="original")


def test_the_same_result_is_the_same_whatever_the_order_of_its_keys() -> None:
    verdict = judge_replay(run({"a": 1, "b": 2.0}), shadow(run({"b": 2, "a": 1})))

    assert isinstance(verdict, Same)
    assert verdict.hash == pack({"a": 1, "b": 2}).digest.hex()


def test_another_result_differs_at_a_path() -> None:
    verdict = judge_replay(run({"a": 1, "b": [1, 2]}), shadow(run({"a": 2, "b": [1, 2]})))

    assert isinstance(verdict, Differs)
    assert verdict.result.changes == [Change("/a", "changed", 1, 2)]


def test_what_is_ignored_makes_no_difference_and_the_rest_still_does() -> None:
    old, new = run({"at": 1, "total": 5}), shadow(run({"at": 2, "total": 5}))
    ignore = [read_path("$.at")]
    other = judge_replay(old, shadow(run({"at": 2, "total": 6})), ignore=ignore)

    assert isinstance(judge_replay(old, new), Differs)
    assert isinstance(judge_replay(old, new, ignore=ignore), Same)
    assert isinstance(other, Differs)
    assert [change.path for change in other.result.changes] == ["/total"]


def test_of_failures_class_and_message_count_and_nothing_else() -> None:
    changed = msgspec.structs.replace(
        failed(), faults=[{"kind": "raised", "type": "ValueError", "message": "no", "attempt": 9}]
    )
    verdict = judge_replay(failed(), shadow(failed(message="yes")))

    assert isinstance(judge_replay(failed(), shadow(changed)), Same)
    assert isinstance(judge_replay(failed(), shadow(failed(type="KeyError"))), Differs)
    assert isinstance(verdict, Differs)
    assert verdict.result.changes == [Change("/message", "changed", "no", "yes")]


def test_failing_where_the_original_succeeded_differs_and_so_does_the_reverse() -> None:
    broken = judge_replay(run(1), shadow(failed()))
    mended = judge_replay(failed(), shadow(run(1)))

    assert isinstance(broken, Differs)
    assert broken.status == (Status.SUCCESSFUL, Status.FAILED)
    assert [(c.path, c.kind) for c in broken.result.changes] == [
        ("/error", "added"),
        ("/result", "removed"),
    ]
    assert isinstance(mended, Differs)


@pytest.mark.parametrize("kind", ["nondeterminism", "not_recorded"])
def test_another_way_through_the_steps_cannot_be_compared(kind: str) -> None:
    verdict = judge_replay(run(1), shadow(failed(kind, message="Step 2 was step 'pay'.")))

    assert isinstance(verdict, NotReplayable)
    assert (verdict.why, verdict.reason) == ("steps", "Step 2 was step 'pay'.")


def test_the_environments_are_compared_where_both_are_known() -> None:
    other = {"code": {"tasks": {"shop.charge@1": {"function": "b", "tree": "shop"}}, "trees": {}}}
    verdict = judge_replay(run(1), shadow(run(2)), provenances=(DOC, other))
    unknown = judge_replay(run(1), shadow(run(2)), provenances=(None, other))

    assert isinstance(verdict, Differs)
    assert isinstance(unknown, Differs)
    assert [change.path for change in verdict.provenance.changes] == ["/code/function"]
    assert not unknown.provenance


@pytest.mark.parametrize(
    ("original", "why"),
    [
        (run(status=Status.RUNNING), "unfinished"),
        (run(status=Status.WAITING), "unfinished"),
        (run(status=Status.CANCELLED), "cancelled"),
        (run(spec_json=SPEC.text.replace("5", "6")), "altered"),
        (run(spec_json="{"), "altered"),
        (run(spec_json="[]", spec_hash=pack([]).digest.hex()), "altered"),
        (run(task="shop.refund"), "altered"),
        (run(1, result_json="2"), "altered"),
        (run(result_json=None), "expired"),
        (failed("lost"), "lost"),
        (run(shadow=True, replay_of="x"), "shadow"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_its_reason(original: Run, why: str) -> None:
    found = obstacle(original, ["shop.charge@1", "shop.refund@1"])

    assert found is not None
    assert found.why == why
    assert found.reason


@pytest.mark.parametrize(
    ("known", "why"),
    [(["shop.charge@2"], "unknown_version"), (["other@1"], "unknown_task"), ([], "unknown_task")],
)
def test_code_that_is_not_there_is_named(known: list[str], why: str) -> None:
    found = obstacle(run(1), known)

    assert found is not None
    assert found.why == why
    assert "shop.charge" in found.reason


def test_what_ended_by_itself_can_be_replayed() -> None:
    assert obstacle(run(1), ["shop.charge@1"]) is None
    assert obstacle(failed(), ["shop.charge@1"]) is None


def step(sequence: int, *, attempt: int = 1) -> StepRow:
    return StepRow(
        run_id="original",
        sequence=sequence,
        kind="step",
        name=f"s{sequence}",
        open=False,
        result_json="1",
        result_hash=None,
        attempt=attempt,
        at=NOW,
        wake_at=None,
    )


def met(count: int, of: Run) -> Run:
    """A shadow that failed after so many steps."""
    return msgspec.structs.replace(
        shadow(of), faults=[{**of.faults[-1], "met": [*range(1, count + 1)]}]
    )


def test_an_error_after_fewer_steps_than_recorded_names_the_missing() -> None:
    steps = [step(1), step(2), step(3)]
    broken = judge_replay(run(1), met(1, failed()), steps=steps)
    whole = judge_replay(run(1), met(3, failed()), steps=steps)

    assert isinstance(broken, Differs)
    assert [(c.path, c.kind, c.old) for c in broken.steps.changes] == [
        ("/2", "removed", "step 's2'"),
        ("/3", "removed", "step 's3'"),
    ]
    assert isinstance(whole, Differs)
    assert not whole.steps


def test_of_a_failure_only_steps_of_its_last_attempt_are_missing() -> None:
    original = msgspec.structs.replace(failed(), attempts=2)
    steps = [step(1, attempt=1), step(2, attempt=1)]
    fewer = judge_replay(original, met(1, failed()), steps=[*steps, step(3, attempt=2)])

    assert isinstance(judge_replay(original, met(1, failed()), steps=steps), Same)
    assert isinstance(fewer, Differs)
    assert [change.path for change in fewer.steps.changes] == ["/3"]


def test_the_steps_of_a_crashed_replay_are_unknown() -> None:
    verdict = judge_replay(run(1), shadow(failed("crashed")), steps=[step(1)])

    assert isinstance(verdict, Differs)
    assert not verdict.steps


def test_paths_into_results_leave_failures_alone() -> None:
    old, new = failed(message="one"), shadow(failed(message="two"))

    assert isinstance(judge_replay(old, new, ignore=read_paths(["$.message"])), Differs)
    assert isinstance(judge_replay(old, new, ignore=read_paths(["$error.message"])), Same)
    results = run({"message": 1}), shadow(run({"message": 2}))
    assert isinstance(judge_replay(*results, ignore=read_paths(["$error.message"])), Differs)
    assert isinstance(judge_replay(*results, ignore=read_paths(["$.message"])), Same)


def test_values_can_be_hidden() -> None:
    old, new = run({"a": 1, "b": "secret"}), shadow(run({"a": 2, "c": "secret"}))
    verdict = hide_values(judge_replay(old, new))

    assert isinstance(verdict, Differs)
    assert [(change.path, change.kind) for change in verdict.result.changes] == [
        ("/a", "changed"),
        ("/b", "removed"),
        ("/c", "added"),
    ]
    assert "secret" not in repr(verdict)
