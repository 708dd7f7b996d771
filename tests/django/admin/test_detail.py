# SPDX-License-Identifier: MIT
"""The page of a run: everything that is known of it, safe to look at."""

from html import unescape
from typing import Any

import pytest
from django.test import Client

from byrote.assembly.identity import new_id
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.django.admin import stage
from tests.django.shop import tasks
from tests.store.runs.test_progress import tell
from tests.support import Db, enqueue

RUNS = "/admin/byrote/run/"


def text_of(client: Client, run_id: str) -> str:
    page = client.get(f"{RUNS}{run_id}/change/")
    assert page.status_code == 200
    return page.content.decode()


@pytest.mark.parametrize(
    "make",
    [
        lambda _db: stage.ready(),
        lambda _db: stage.waiting(),
        stage.running,
        stage.successful,
        stage.dead,
        stage.cancelled,
        stage.archived,
    ],
    ids=["ready", "waiting", "running", "successful", "dead", "cancelled", "archived"],
)
def test_a_run_in_any_state_opens(root: Client, db: Db, make: Any) -> None:
    run_id = make(db)

    text = text_of(root, run_id)

    assert run_id in text
    assert str(stage.status_of(db, run_id)).lower() in text


def test_values_are_shown_exactly_as_they_are_stored(root: Client, db: Db) -> None:
    run_id = stage.successful(db)

    text = unescape(text_of(root, run_id))

    assert '"sum": 1.0,\n  "zero": -0.0,\n  "big": 1e22' in text
    answer = root.get(f"{RUNS}{run_id}/result.json")
    assert answer.content == b'{"sum":1.0,"zero":-0.0,"big":1e22}'
    assert answer["Content-Disposition"].startswith("attachment")


def test_every_attempt_shows_its_error_its_output_and_its_worker(root: Client, db: Db) -> None:
    text = unescape(text_of(root, stage.storied(db)))

    for told in ("Attempt 1", "Attempt 2", "shop.Busy", stage.TRACEBACK, "begun", "warned <i>"):
        assert told in text
    for told in ("by w-1", "by w-2", "7 earlier bytes were dropped", "Python 3.13.0"):
        assert told in text


def test_steps_artifacts_and_the_timeline_are_there(root: Client, db: Db) -> None:
    text = unescape(text_of(root, stage.storied(db)))

    assert '"paid": true' in text
    assert "byrote runs fetch" in text
    kinds = ("Enqueued", "Claimed", "Retried", "Claimed", "Succeeded")
    places = []
    for kind in kinds:
        places.append(text.index(f"<strong>{kind}</strong>", places[-1] + 1 if places else 0))
    assert places == sorted(places)


def test_no_text_of_a_task_becomes_markup(root: Client, db: Db) -> None:
    text = text_of(root, stage.storied(db))

    for markup in ("<b>later</b>", "warned <i>", "<script>&quot;", '{"<script>'):
        assert markup not in text


def test_an_artifact_in_the_database_is_downloaded_and_never_shown_in_place(
    root: Client, db: Db
) -> None:
    run_id = stage.storied(db)

    answer = root.get(f"{RUNS}{run_id}/artifacts/2/a/report.html")

    assert answer.content == b"<html>"
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == 'attachment; filename="report.html"'
    for absent in ("artifacts/1/a/report.html", "artifacts/2/big.bin", "artifacts/2/no"):
        assert root.get(f"{RUNS}{run_id}/{absent}").status_code == 404


def test_a_replay_and_its_original_lead_to_each_other(root: Client, db: Db) -> None:
    original = stage.successful(db, '{"total":5}')
    run_id = new_id()
    fetch(db, queries.replay(original=original, id=run_id))
    assert run_id in text_of(root, original)
    assert original in text_of(root, run_id)
    assert "different result" not in text_of(root, run_id)

    stage.settle(db, stage.success(stage.lease(db), '{"total":6}'))

    text = text_of(root, run_id)
    assert "different result" in text
    assert "/total" in text


def test_a_replay_with_the_same_result_is_shown_as_same(root: Client, db: Db) -> None:
    original = stage.successful(db)
    run_id = new_id()
    fetch(db, queries.replay(original=original, id=run_id))
    stage.settle(db, stage.success(stage.lease(db), '{"sum":1.0,"zero":-0.0,"big":1e22}'))

    assert "same result" in text_of(root, run_id)


def test_a_run_of_a_task_that_no_longer_exists_opens(root: Client, db: Db) -> None:
    [run_id] = enqueue(db, task="gone.away")

    assert "gone.away" in text_of(root, run_id)
    assert b"gone.away" in root.get(RUNS).content


def test_an_altered_row_still_opens(root: Client, db: Db) -> None:
    run_id = stage.ready()
    db.execute("update byrote_task_runs set spec_json = 'not json' where true")

    assert "not json" in text_of(root, run_id)
    assert root.get(RUNS).status_code == 200


def test_a_run_with_many_attempts_and_a_large_spec_opens_and_shows_the_ends(
    root: Client, db: Db
) -> None:
    run_id = stage.ready("y" * 300_000)
    many = (
        "update byrote_task_runs set attempts = 4000, worker_ids = array_fill('w'::text, '{4000}')"
    )
    db.execute(many.encode())

    text = text_of(root, run_id)

    assert "Attempt 4000" in text
    assert "3950 earlier attempts" in text
    assert len(text) < 150_000
    assert len(root.get(f"{RUNS}{run_id}/spec.json").content) > 300_000


def test_an_unknown_run_is_not_found(root: Client) -> None:
    assert root.get(f"{RUNS}{new_id()}/change/").status_code == 404
    assert root.get(f"{RUNS}nonsense/change/").status_code == 404


def test_only_what_makes_sense_now_is_offered(root: Client, db: Db) -> None:
    offered = {
        "dead": {"retry", "replay", "verify", "delete_selected"},
        "ready": {"cancel", "replay"},
    }
    for name, run_id in (("dead", stage.dead(db)), ("ready", stage.ready())):
        text = text_of(root, run_id)
        shown = {
            verb
            for verb in ("retry", "hurry", "cancel", "replay", "verify", "delete_selected")
            if f"/do/{verb}/" in text
        }
        assert shown == offered[name]


def test_a_unique_key_is_shown_and_marked_as_free_after_the_end(root: Client, db: Db) -> None:
    result = tasks.add.using(unique_key="<sum>").enqueue(1, 2)
    held = text_of(root, result.id)
    fetch(db, queries.cancel([result.id]))

    assert "<code>&lt;sum&gt;</code></dd>" in held
    assert "<code>&lt;sum&gt;</code>, free again" in text_of(root, result.id)


def test_a_run_under_way_shows_how_far_it_has_come(root: Client, db: Db) -> None:
    stage.ready()
    leased = stage.lease(db)
    tell(db, leased, 2, 5, "Step <2> of 5")
    text = text_of(root, leased.id)

    assert '<progress max="100" value="40.0"' in text
    assert "40 % (2 of 5), Step &lt;2&gt; of 5" in text
