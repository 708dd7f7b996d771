# SPDX-License-Identifier: MIT
"""Queues with what waits in them, workers with their load."""

import pytest
from django.test import Client

from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.django.admin import stage
from tests.django.admin.conftest import person
from tests.django.shop import tasks
from tests.support import Db, register

QUEUES = "/admin/byrote/queue/"
WORKERS = "/admin/byrote/worker/"


def test_depths_agree_with_the_plain_count_where_there_is_little(db: Db) -> None:
    stage.dead(db)
    stage.running(db)
    stage.waiting()
    stage.ready()
    tasks.note.enqueue("hi")

    capped = {row.queue: row for row in fetch(db, queries.depths(most=queries.LIST_MAX))}
    plain = {row.queue: row for row in fetch(db, queries.queues())}

    assert list(capped) == ["default", "mail"]
    for queue, row in plain.items():
        for part in ("ready", "waiting", "running", "dead", "paused_at"):
            assert getattr(capped[queue], part) == getattr(row, part)


def test_a_depth_is_counted_to_its_cap_and_no_further(db: Db) -> None:
    for _ in range(3):
        stage.dead(db)
    for _ in range(5):
        stage.ready()

    [row] = fetch(db, queries.depths(most=2))

    assert (row.ready, row.dead) == (2, 2)


def test_a_queue_is_paused_and_resumed_and_repeating_it_is_harmless(root: Client, db: Db) -> None:
    stage.ready()

    for _ in range(2):
        page = root.post(f"{QUEUES}do/pause/", {"queue": "default"}, follow=True)
        assert b"paused" in page.content
    [[since]] = db.execute("select paused_at from byrote_queues").fetchall()
    assert since is not None
    for _ in range(2):
        root.post(f"{QUEUES}do/resume/", {"queue": "default"})
    assert db.execute("select paused_at from byrote_queues").fetchall() == [(None,)]


def test_pausing_needs_its_permission_and_a_queue_that_is_there(root: Client, db: Db) -> None:
    stage.ready()
    watcher = person()
    assert watcher.post(f"{QUEUES}do/pause/", {"queue": "default"}).status_code == 403
    assert b"Pause" not in watcher.get(QUEUES).content
    assert root.post(f"{QUEUES}do/pause/", {"queue": "no-such"}).status_code == 404
    assert root.post(f"{QUEUES}do/explode/", {"queue": "default"}).status_code == 404
    assert root.get(f"{QUEUES}do/pause/").status_code == 405
    assert db.execute("select count(*) from byrote_queues").fetchall() == [(0,)]


def test_a_worker_shows_its_load_and_whether_it_still_lives(root: Client, db: Db) -> None:
    stage.register(db, "alive-1")
    stage.register(db, "silent-1")
    beat = {"idle": False, "stopping": False, "running": 3, "finished": 1_234}
    fetch(db, queries.heartbeat(worker="alive-1", **beat))
    db.execute(
        "update byrote_workers set seen_at = seen_at - interval '2 minutes' where worker_id = %s",
        ("silent-1",),
    )

    text = root.get(WORKERS).content.decode()

    assert "3 of 8" in text
    assert text.index("busy") > text.index("alive-1")
    assert text.index("gone", text.index("silent-1")) > 0


@pytest.mark.parametrize("where", [QUEUES, WORKERS])
def test_empty_pages_have_a_message(root: Client, where: str) -> None:
    text = root.get(where).content.decode()

    assert "No worker is running" in text or "There are no queues yet" in text


@pytest.mark.parametrize("where", [QUEUES, WORKERS])
def test_pages_are_only_for_those_who_may_see_them(shop: dict[str, str], where: str) -> None:
    assert person(sees=("view_run",)).get(where).status_code == 403


def test_nothing_can_be_added_or_edited(root: Client) -> None:
    run_id = stage.ready()
    for where in ("run/add/", "queue/add/", "worker/add/", f"run/{run_id}/delete/"):
        assert root.get(f"/admin/byrote/{where}").status_code == 404
    index = root.get("/admin/").content.decode()
    assert "/admin/byrote/run/" in index
    for model in ("run", "queue", "worker"):
        assert f"/admin/byrote/{model}/add/" not in index


def test_a_task_that_no_live_worker_knows_is_named_on_both_pages(root: Client, db: Db) -> None:
    run_id = stage.ready()
    register(db, "w", "default")
    fetch(db, queries.note_unserved())
    queues = root.get(QUEUES).content.decode()
    run = root.get(f"/admin/byrote/run/{run_id}/change/").content.decode()

    assert "default: no live worker knows " in queues
    assert "No live worker of the queue default knows " in run
