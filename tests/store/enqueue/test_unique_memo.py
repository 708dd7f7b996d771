# SPDX-License-Identifier: MIT
"""Tasks with a memo and a unique key: a stored result answers, else the key decides."""

from functools import partial

from byrote.assembly.identity import new_id
from byrote.core.ports.script import run_script
from byrote.core.spec import Delivery, Spec, describe
from byrote.core.state import Status
from byrote.store.queries import enqueue_memo, until_accepted
from byrote.store.runners.sync import fetch
from tests.store.enqueue.test_memo import kept
from tests.store.enqueue.test_unique import one, send, spec
from tests.support import Db, claim, finish, run_of, success

CODE = "a" * 64


def remembering(db: Db, *specs: Spec) -> list[tuple[str, bool]]:
    sent = [(new_id(), each) for each in specs]
    accepted = run_script(until_accepted(enqueue_memo(sent, {("t", 1): CODE})), partial(fetch, db))
    return [
        (accepted.instead.get(run_id, run_id), run_id not in accepted.instead) for run_id, _ in sent
    ]


def test_two_runs_of_a_memo_task_with_one_key_are_computed_once(db: Db) -> None:
    [(first, _), again_first] = remembering(db, spec(), spec())
    assert again_first == (first, False)
    [lease] = claim(db)
    finish(db, [success(lease, "42") | {"more": {"memo": kept(lease)}}])
    [(answered, made), (later, _)] = remembering(db, spec(), spec(run_after="1h"))

    assert made
    assert (run_of(db, answered).memo_of, run_of(db, answered).unique_key) == (first, "k")
    assert run_of(db, later).status is Status.WAITING


def test_a_stored_result_is_given_even_while_its_key_is_held(db: Db) -> None:
    """Nothing is executed for it, so there is nothing to be unique."""
    remembering(db, spec())
    [lease] = claim(db)
    finish(db, [success(lease, "42") | {"more": {"memo": kept(lease)}}])
    holder, _ = send(db, describe("t", 1, ["other"], {}, delivery=Delivery(unique_key="k")))[0]
    [(answered, made)] = remembering(db, spec())

    assert made
    assert run_of(db, answered).status is Status.SUCCESSFUL
    assert one(db) == (holder, False)
