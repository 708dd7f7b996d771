# SPDX-License-Identifier: MIT
"""What operators do to runs: each behind its own permission, and safe to repeat."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from byrote.assembly.identity import new_id
from byrote.django.models import Output, Run, Step
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.django.admin import stage
from tests.django.admin.conftest import person
from tests.support import Db, count, history

RUNS = "/admin/byrote/run/"
PERMISSIONS = {
    "retry": "retry_run",
    "hurry": "hurry_run",
    "cancel": "cancel_run",
    "replay": "replay_run",
    "verify": "verify_run",
    "delete_selected": "delete_run",
}
MAKE: dict[str, Callable[[Db], str]] = {
    "retry": stage.dead,
    "hurry": lambda _db: stage.waiting(),
    "cancel": lambda _db: stage.ready(),
    "replay": stage.successful,
    "verify": stage.successful,
    "delete_selected": stage.dead,
}
AFTER = {
    "retry": "READY",
    "hurry": "READY",
    "cancel": "CANCELLED",
    "replay": "SUCCESSFUL",
    "verify": "SUCCESSFUL",
    "delete_selected": None,
}


def press(client: Client, name: str, run_id: str, **more: str) -> Any:
    """The button of a verb on the page of a run."""
    form = {"nonce": new_id(), "confirmed": "yes", **more}
    return client.post(f"{RUNS}{run_id}/do/{name}/", form)


def choose(client: Client, name: str, *ids: str, **more: str) -> Any:
    """The action of the list, for these runs."""
    form = {"action": name, "_selected_action": ids, "nonce": new_id(), "confirmed": "yes", **more}
    return client.post(RUNS, {"index": "0", **form}, follow=True)


@pytest.mark.parametrize("name", PERMISSIONS)
@pytest.mark.parametrize("way", [press, choose])
def test_a_verb_moves_the_runs_it_is_for(root: Client, db: Db, name: str, way: Any) -> None:
    run_id = MAKE[name](db)
    before = count(db, "byrote_runs")

    way(root, name, run_id)

    assert stage.status_of(db, run_id) == AFTER[name]
    more = {"replay": 1, "verify": 1, "delete_selected": -1}
    assert count(db, "byrote_runs") - before == more.get(name, 0)


@pytest.mark.parametrize("name", PERMISSIONS)
def test_a_verb_needs_its_own_permission_and_no_other(db: Db, name: str) -> None:
    run_id = MAKE[name](db)
    before, events = stage.status_of(db, run_id), count(db, "byrote_events")
    others = person(*(PERMISSIONS[other] for other in PERMISSIONS if other != name), "requeue_run")

    assert press(others, name, run_id).status_code == 403
    choose(others, name, run_id)
    assert f"/do/{name}/" not in others.get(f"{RUNS}{run_id}/change/").content.decode()
    assert f'value="{name}"' not in others.get(RUNS).content.decode()
    assert (stage.status_of(db, run_id), count(db, "byrote_events")) == (before, events)

    press(person(PERMISSIONS[name]), name, run_id)
    assert count(db, "byrote_events") == events + 1


@pytest.mark.parametrize("name", PERMISSIONS)
def test_a_page_that_is_sent_twice_does_it_once(root: Client, db: Db, name: str) -> None:
    run_id, nonce = MAKE[name](db), new_id()
    press(root, name, run_id, nonce=nonce)
    rows, events = count(db, "byrote_runs"), count(db, "byrote_events")

    again = press(root, name, run_id, nonce=nonce)

    assert again.status_code == 302
    assert (count(db, "byrote_runs"), count(db, "byrote_events")) == (rows, events)


def test_a_replay_sent_twice_is_known_even_when_the_first_has_died(root: Client, db: Db) -> None:
    original, nonce = stage.successful(db), new_id()
    press(root, "replay", original, nonce=nonce)
    leased = stage.lease(db)
    stage.settle(db, stage.failure(leased))

    press(root, "replay", original, nonce=nonce)

    assert count(db, "byrote_runs") == 2
    press(root, "replay", original)
    assert count(db, "byrote_runs") == 3


def test_a_second_cancel_request_sends_nothing(root: Client, db: Db) -> None:
    run_id = stage.running(db)
    press(root, "cancel", run_id)
    told = history(db, run_id)

    press(root, "cancel", run_id)

    assert history(db, run_id) == told
    assert told[-1] == "CancelRequested"


def test_a_user_who_may_only_run_now_cannot_requeue_the_dead(db: Db) -> None:
    run_id = stage.dead(db)

    press(person("hurry_run"), "hurry", run_id)

    assert stage.status_of(db, run_id) == "FAILED"


def test_a_user_who_may_only_retry_cannot_run_waiting_runs_now(db: Db) -> None:
    run_id = stage.waiting()

    press(person("retry_run"), "retry", run_id)

    assert stage.status_of(db, run_id) == "WAITING"


def test_a_run_that_a_worker_moves_at_this_moment_is_left_alone(root: Client, db: Db) -> None:
    run_id = stage.dead(db)
    with db.transaction():
        db.execute("select 1 from byrote_dead where result_id = %s for update", (run_id,))
        page = choose(root, "retry", run_id)

    assert b"1 run is locked by another transaction; try again." in page.content
    assert stage.status_of(db, run_id) == "FAILED"


@pytest.mark.parametrize("make", [stage.running, lambda _db: stage.ready()])
def test_what_has_not_ended_is_not_deleted(root: Client, db: Db, make: Any) -> None:
    run_id = make(db)

    page = choose(root, "delete_selected", run_id)

    assert stage.status_of(db, run_id) in {"RUNNING", "READY"}
    assert b"cancel the others first" in page.content


def test_deleting_asks_first_and_takes_along_what_belongs_to_the_run(root: Client, db: Db) -> None:
    run_id = stage.storied(db)
    kept = stage.storied(db)
    form = {"action": "delete_selected", "_selected_action": [run_id], "index": "0"}
    asked = root.post(RUNS, form)
    assert b"This cannot be undone" in asked.content
    assert stage.status_of(db, run_id) == "SUCCESSFUL"

    root.post(RUNS, {**form, "confirmed": "yes"})

    assert stage.status_of(db, run_id) is None
    for table in (Step, Output):
        left = {str(found) for found in table.objects.values_list("result_id", flat=True)}
        assert left == {kept}
    assert history(db, run_id)[-1] == "Deleted"


def test_archived_runs_are_deleted_too(root: Client, db: Db) -> None:
    run_id = stage.archived(db)

    choose(root, "delete_selected", run_id)

    assert stage.status_of(db, run_id) is None


def test_who_did_what_is_kept(root: Client, db: Db) -> None:
    run_id = stage.dead(db)
    press(root, "retry", run_id)
    press(root, "cancel", run_id)

    told = LogEntry.objects.order_by("pk").values_list("user__username", "change_message")
    assert list(told) == [("root", "Retry."), ("root", "Cancel.")]
    page = root.get(f"{RUNS}{run_id}/history/")
    assert b"Retry." in page.content


def test_requeueing_all_dead_runs_of_a_list_needs_its_own_permission(db: Db) -> None:
    wanted = [stage.dead(db), stage.dead(db)]
    tasks_note = stage.ready()
    where = f"{RUNS}requeue/?status=FAILED&task={stage.ECHO}"
    assert person("retry_run").get(where).status_code == 403
    client = person("requeue_run")
    assert b"Requeue all of these" in client.get(RUNS, {"status": "FAILED"}).content
    assert b"2 dead runs match" in client.get(where).content

    page = client.post(where, follow=True)

    assert b"2 dead runs were requeued" in page.content
    assert [stage.status_of(db, run_id) for run_id in wanted] == ["READY", "READY"]
    assert stage.status_of(db, tasks_note) == "READY"
    assert b"0 dead runs" in client.post(where, follow=True).content


def test_requeueing_touches_only_what_the_list_shows(root: Client, db: Db) -> None:
    run_id = stage.dead(db)

    root.post(f"{RUNS}requeue/?status=FAILED&task=another.task")

    assert stage.status_of(db, run_id) == "FAILED"
    assert root.post(f"{RUNS}requeue/?task={stage.ECHO}").status_code == 404


def test_one_press_moves_so_many_and_no_more(
    root: Client, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [stage.dead(db) for _ in range(3)]
    monkeypatch.setattr("byrote.django.admin.actions.BATCH_MAX", 2)
    monkeypatch.setattr("byrote.django.admin.action_views.BATCH_MAX", 2)

    choose(root, "retry", *made, select_across="1")
    assert count(db, "byrote_dead") == 3
    page = root.post(f"{RUNS}requeue/?status=FAILED", follow=True)

    assert count(db, "byrote_dead") == 1
    assert b"More are left" in page.content


def test_unknown_verbs_and_unknown_runs_are_not_found(root: Client) -> None:
    run_id = stage.ready()

    assert press(root, "explode", run_id).status_code == 404
    assert press(root, "cancel", new_id()).status_code == 302
    assert root.get(f"{RUNS}{run_id}/do/cancel/").status_code == 405
    assert Run.objects.get().status == "READY"


def test_a_forged_form_is_refused(db: Db) -> None:
    run_id = stage.dead(db)
    careful = Client(enforce_csrf_checks=True)
    careful.cookies = person("retry_run").cookies

    assert press(careful, "retry", run_id).status_code == 403
    assert stage.status_of(db, run_id) == "FAILED"


def test_the_verbs_of_a_replay_lead_to_the_new_run(root: Client, db: Db) -> None:
    original = stage.successful(db)

    answer = press(root, "replay", original)

    [made] = [run for run in fetch(db, queries.runs()) if run.replay_of == original]
    assert answer["Location"] == f"{RUNS}{made.id}/change/"
