# SPDX-License-Identifier: MIT
"""The admin shows the true state of runs, workers and queues, in words."""

from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.django.admin import stage
from tests.django.admin.test_detail import text_of
from tests.support import Db

USED = '[{"attempt": 3, "wall_us": 2500000, "cpu_us": 13188, "rss_max": 68591616}]'
THRICE = """
update byrote_task_runs
set attempts = 3, charged = 1, max_attempts = 1, usage = %s, worker_ids = '{a,b,c}',
  run_after = started_at + interval '1 hour', enqueued_at = started_at - interval '10 seconds'
"""


def test_usage_is_shown_with_the_attempt_that_it_is_of(root: Client, db: Db) -> None:
    run_id = stage.successful(db)
    db.execute(THRICE, [USED])
    text = unescape(text_of(root, run_id))

    third = text.index("Attempt 3")
    assert third < text.index("took 2.5s, CPU 13ms, peak memory 65 MiB") < text.index("Attempt 2")
    assert "cpu_us" not in text
    assert "after waiting 10s" in text
    assert "3, of which 1 counts against the limit of 1" in text


def test_the_list_counts_what_counts_against_the_limit(root: Client, db: Db) -> None:
    stage.successful(db)
    db.execute(THRICE, [USED])

    assert "1 of 1, and 2 not counted" in root.get("/admin/byrote/run/").content.decode()


def test_the_timeline_speaks_in_words(root: Client, db: Db) -> None:
    run_id = stage.storied(db)
    text = unescape(text_of(root, run_id))

    assert "reported=" not in text
    assert "reported as" in text
    assert "_us" not in text


def test_a_worker_that_runs_a_task_is_busy_also_with_room_for_more(root: Client, db: Db) -> None:
    stage.register(db)
    db.execute("update byrote_workers set idle = true, running = 1, concurrency = 4")

    assert "byrote-busy" in root.get("/admin/byrote/worker/").content.decode()


def test_queues_of_replays_are_not_offered_as_filters(db: Db) -> None:
    stage.dead(db)
    db.execute("update byrote_dead set queue_name = 'byrote.shadow.0e7'")
    stage.ready()

    assert [name for kind, name in fetch(db, queries.filter_names()) if kind == "queue"] == [
        "default"
    ]


@pytest.mark.parametrize("model", ["queue", "worker"])
@pytest.mark.parametrize("page", ["change", "history"])
def test_addresses_that_any_admin_has_lead_to_the_list(root: Client, model: str, page: str) -> None:
    answer = root.get(reverse(f"admin:byrote_{model}_{page}", args=["default"]))

    assert (answer.status_code, answer["Location"]) == (302, f"/admin/byrote/{model}/")
