# SPDX-License-Identifier: MIT
"""Replay and verify: requested in the admin, executed by a worker, shown on the runs' pages."""

from html import unescape
from typing import Any

import pytest
from django.test import Client

from byrote.django.models import Run
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.django.admin import stage
from tests.django.admin.test_actions import choose, press
from tests.django.admin.test_detail import text_of
from tests.django.driving import RUNS_LEFT, drain, manage
from tests.django.shop import elsewhere, tasks
from tests.support import Db, claim, enqueue, success

VERIFY = "byrote.django.tasks.verify"

type Shop = dict[str, str]


def asked(original: str) -> Any:
    """The run that verifies another."""
    return Run.objects.get(replay_of=original, shadow__isnull=True)


def shadows() -> int:
    return Run.objects.filter(shadow=True).count()


def test_the_request_executes_nothing_and_enqueues_a_run_for_a_worker(root: Client, db: Db) -> None:
    original = tasks.note.enqueue("hi").id
    [leased] = claim(db, tasks=["tests.django.shop.tasks.note@1"], queues=["mail"])
    stage.settle(db, success(leased, '"hi"'))

    page = choose(root, "verify", original)

    request = asked(original)
    assert "will be executed again by a worker" in page.content.decode()
    assert (request.task_path, request.queue_name, request.status) == (VERIFY, "mail", "READY")
    assert shadows() == 0
    assert "reload this page to see the verdict" in text_of(root, original)


def test_a_worker_finds_same_and_the_pages_link_to_each_other(
    shop: Shop, root: Client, db: Db
) -> None:
    originals = [tasks.add.enqueue(1, 2).id, tasks.fail_otherwise.enqueue().id]
    originals += [
        elsewhere.hidden.enqueue(5).id,
        tasks.add.using(backend="reports").enqueue(3, 4).id,
    ]
    drain(shop, code=RUNS_LEFT)
    drain(shop, "--backend", "reports")

    choose(root, "verify", *originals)
    assert asked(originals[3]).task_path == f"reports:{VERIFY}"
    drain(shop, code=RUNS_LEFT)
    drain(shop, "--backend", "reports")

    for original in originals:
        request = asked(original)
        told = fetch(db, queries.run(str(request.pk)))[0].result
        assert told["verdict"] == "same", told
        text = text_of(root, original)
        assert "The replay ended with the same outcome." in text
        assert str(request.pk) in text
        assert told["replay"] in text
        assert original in text_of(root, str(request.pk))
        assert "Verifies" in text_of(root, str(request.pk))
        assert original in text_of(root, told["replay"])
    assert shadows() == 4


def test_a_difference_is_shown_with_then_and_now_even_when_the_shadow_is_gone(
    shop: Shop, root: Client, db: Db
) -> None:
    original = tasks.tariff.enqueue().id
    drain(shop)
    press(root, "verify", original)

    drain(shop, SHOP_TARIFF="<new>")

    for _ in range(2):
        text = unescape(text_of(root, original))
        assert "differs" in text
        assert '"old"' in text
        assert '"<new>"' in text
        assert "<new>" not in text_of(root, original)
        db.execute("delete from byrote_task_runs where shadow")
    assert "Executed as" not in text_of(root, original)


def test_a_run_that_cannot_be_replayed_has_a_reason(shop: Shop, root: Client, db: Db) -> None:
    [gone] = enqueue(db, task="gone.away")
    [leased] = claim(db, tasks=["gone.away@1"])
    stage.settle(db, success(leased))

    press(root, "verify", gone)
    drain(shop)

    text = text_of(root, gone)
    assert "not replayable" in text
    assert "The app has no task gone.away" in text


def test_a_failed_verification_is_reported(root: Client, db: Db) -> None:
    original = stage.successful(db)
    press(root, "verify", original)
    leased = stage.lease(db, task=VERIFY)
    stage.settle(db, stage.failure(leased, message="no <database>"))

    text = text_of(root, original)

    assert "The verification itself failed: no &lt;database&gt;" in text


def test_an_altered_verdict_does_not_break_the_page(root: Client, db: Db) -> None:
    original = stage.successful(db)
    press(root, "verify", original)
    stage.settle(db, success(stage.lease(db, task=VERIFY), '{"verdict": 7, "status": []}'))

    assert "Verified replay" in text_of(root, original)


def test_long_values_are_cut_and_nothing_becomes_markup(root: Client, db: Db) -> None:
    text = text_of(root, stage.verified(db))

    assert "&lt;6&gt;" in text
    assert "<6>" not in text
    assert "x" * 499 not in text
    assert "x" * 400 in text
    assert "3.13.1" in text


@pytest.mark.parametrize("make", [stage.running, stage.cancelled, lambda _db: stage.waiting()])
def test_what_did_not_end_by_itself_is_left_alone(root: Client, db: Db, make: Any) -> None:
    run_id = make(db)

    page = choose(root, "verify", run_id)

    assert b"1 run unchanged" in page.content
    assert "/do/verify/" not in text_of(root, run_id)
    assert Run.objects.count() == 1


def test_verifications_and_shadows_are_not_verified(root: Client, db: Db) -> None:
    original = stage.successful(db)
    press(root, "verify", original)
    request = str(asked(original).pk)
    stage.settle(db, success(stage.lease(db, task=VERIFY), '{"verdict": "same"}'))

    assert "/do/verify/" not in text_of(root, request)
    assert b"1 run unchanged" in choose(root, "verify", request).content


def test_one_press_may_have_so_many_verified(
    root: Client, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [stage.successful(db) for _ in range(3)]
    monkeypatch.setattr("byrote.django.admin.action_views.BATCH_MAX", 2)

    page = choose(root, "verify", *made)

    assert b"Select up to 2 runs" in page.content
    assert Run.objects.filter(task_path=VERIFY).count() == 0


def test_the_command_knows_tasks_of_other_modules_too(shop: Shop) -> None:
    original = elsewhere.hidden.enqueue(5).id
    drain(shop)

    done = manage(shop, "byrote", "replay", str(original), "--verify")

    assert done.stdout.split()[0] == "same", done
