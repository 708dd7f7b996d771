# SPDX-License-Identifier: MIT
"""The list of runs: everything in one place, narrowed and turned without counting."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from byrote.django.admin.filters import id_at
from byrote.django.admin.run_list import RunList
from byrote.django.models import Run
from tests.django.admin import stage
from tests.django.admin.conftest import person
from tests.django.shop import tasks
from tests.support import Db

RUNS = "/admin/byrote/run/"


def shown(page: Any) -> list[str]:
    """The ids on a page, in order."""
    return re.findall(r'/admin/byrote/run/([0-9a-f-]{36})/change/[?"]', page.content.decode())


def test_live_done_archived_and_dead_runs_are_in_one_list_newest_first(
    root: Client, db: Db
) -> None:
    archived = stage.archived(db)
    made = [stage.successful(db), stage.dead(db), stage.running(db), stage.cancelled(db)]
    made += [stage.waiting(), stage.ready()]

    page = root.get(RUNS)

    assert shown(page) == [archived, *made][::-1]
    assert b"CardRefused" in page.content


def test_the_list_shows_arguments_and_truncates_long_ones(root: Client) -> None:
    stage.ready("<b>", 1.0, card="4242")
    stage.ready("x" * 5_000)

    text = root.get(RUNS).content.decode()

    assert "&quot;&lt;b&gt;&quot;, 1.0, card=&quot;4242&quot;" in text
    assert "characters" in text
    assert "x" * 200 not in text


@pytest.mark.parametrize("status", ["WAITING", "READY", "RUNNING", "SUCCESSFUL", "FAILED"])
def test_a_list_is_narrowed_by_status(root: Client, db: Db, status: str) -> None:
    made = {"FAILED": stage.dead(db), "SUCCESSFUL": stage.successful(db)}
    made |= {"RUNNING": stage.running(db), "WAITING": stage.waiting(), "READY": stage.ready()}

    assert shown(root.get(RUNS, {"status": status})) == [made[status]]


def test_a_list_is_narrowed_by_queue_task_label_and_age(root: Client, db: Db) -> None:
    mail = tasks.note.enqueue("hi").id
    other = stage.ready()
    db.execute(
        'update byrote_task_runs set labels = \'{"order": "42"}\' where result_id = %s', (other,)
    )

    assert shown(root.get(RUNS, {"queue": "mail"})) == [mail]
    assert shown(root.get(RUNS, {"task": stage.ECHO})) == [other]
    assert shown(root.get(RUNS, {"label": "order=42"})) == [other]
    assert shown(root.get(RUNS, {"label": "order"})) == [other]
    assert shown(root.get(RUNS, {"label": "order=43"})) == []
    assert shown(root.get(RUNS, {"age": "1h", "queue": "mail"})) == [mail]
    assert shown(root.get(RUNS, {"age": "over1h"})) == []


def test_runs_are_filtered_by_when_they_were_enqueued(root: Client, db: Db) -> None:
    young, old = stage.ready(), stage.ready()
    ago = "update byrote_task_runs set enqueued_at = enqueued_at - %s where result_id = %s"
    db.execute(ago, (timedelta(days=3), old))
    [[moment]] = db.execute("select min(enqueued_at) from byrote_task_runs").fetchall()
    db.execute(
        "update byrote_task_runs set result_id = %s where result_id = %s", (id_at(moment), old)
    )

    assert shown(root.get(RUNS, {"age": "1d"})) == [young]
    assert shown(root.get(RUNS, {"age": "over1d"})) == [str(id_at(moment))]
    assert len(shown(root.get(RUNS, {"age": "7d"}))) == 2


def test_filters_offer_the_names_that_are_about(root: Client, db: Db) -> None:
    stage.dead(db)
    stage.register(db, queues=["letters"])

    text = root.get(RUNS).content.decode()

    assert "?queue=letters" in text
    assert f"?task={stage.ECHO}" in text


def test_a_name_that_is_not_offered_can_be_asked_for(root: Client) -> None:
    page = root.get(RUNS, {"task": "gone.away"})

    assert page.status_code == 200
    assert b"gone.away" in page.content


@pytest.mark.parametrize(
    "wrong", [{"status": "LOST"}, {"age": "1y"}, {"before": "x"}, {"nonsense": "1"}, {"o": "9"}]
)
def test_a_wrong_parameter_leads_back_to_the_list(root: Client, wrong: dict[str, str]) -> None:
    assert root.get(RUNS, wrong, follow=True).status_code == 200


def test_a_run_is_found_by_its_id_its_hash_and_the_beginning_of_either(
    root: Client, db: Db
) -> None:
    wanted = stage.dead(db)
    stage.archived(db)
    [[spec_hash]] = db.execute(
        "select encode(spec_hash, 'hex') from byrote_dead where result_id = %s", (wanted,)
    ).fetchall()

    for words in (wanted, wanted.upper(), wanted.replace("-", ""), f" {wanted} "):
        assert shown(root.get(RUNS, {"q": words})) == [wanted]
    assert shown(root.get(RUNS, {"q": spec_hash})) == [wanted]
    assert shown(root.get(RUNS, {"q": spec_hash[:9]})) == [wanted]
    assert wanted in shown(root.get(RUNS, {"q": wanted[:13]}))
    assert wanted in shown(root.get(RUNS, {"q": stage.ECHO}))
    assert shown(root.get(RUNS, {"q": "f" * 64})) == []


@pytest.mark.parametrize("words", ["two words", "'; drop table byrote_dead", "é", "x" * 300])
def test_what_cannot_be_searched_for_gets_advice(root: Client, words: str) -> None:
    stage.ready()

    page = root.get(RUNS, {"q": words})

    assert shown(page) == []
    assert b"Search for a run&#x27;s id" in page.content


def test_pages_are_turned_in_both_directions_without_losing_or_repeating_a_run(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byrote.django.admin.runs.RunAdmin.list_per_page", 3)
    made = [stage.ready(n) for n in range(8)][::-1]

    pages, where = [], ""
    while where is not None:
        page = root.get(f"{RUNS}{where}")
        pages.append(shown(page))
        where = page.context_data["cl"].older
    back = root.get(f"{RUNS}{page.context_data['cl'].newer}")

    assert pages == [made[:3], made[3:6], made[6:]]
    assert shown(back) == made[3:6]
    first = root.get(f"{RUNS}{back.context_data['cl'].newer}")
    assert shown(first) == made[:3]
    assert first.context_data["cl"].newer is None
    assert root.get(f"{RUNS}{back.context_data['cl'].newest}").context_data["cl"].newer is None


def test_a_page_neither_counts_nor_skips_nor_reads_large_texts(root: Client) -> None:
    stage.ready()
    with CaptureQueriesContext(connection) as queries:
        root.get(RUNS)

    said = [query["sql"].lower() for query in queries]
    assert [sql for sql in said if "count(" in sql or "offset" in sql] == []
    [listing] = [sql for sql in said if 'from "byrote_runs"' in sql]
    assert "limit 101" in listing
    assert '"byrote_runs"."return_json"' not in listing


def test_a_search_that_takes_too_long_is_broken_off_with_advice(
    root: Client, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.ready()
    monkeypatch.setattr("byrote.django.admin.run_list.PATIENCE", stage.BLINK)
    rows = Run.objects.extra(where=["pg_sleep(30) is not null"])
    monkeypatch.setattr(RunList, "get_queryset", lambda *_a, **_k: rows.order_by("-result_id"))

    page = root.get(RUNS)

    assert b"Narrow the list by age" in page.content
    assert db.execute("show statement_timeout").fetchone() == ("0",)


def test_who_may_not_see_runs_sees_none(shop: dict[str, str]) -> None:
    run_id = stage.ready()
    stranger = person(sees=())

    for where in (RUNS, f"{RUNS}{run_id}/change/", f"{RUNS}{run_id}/spec.json"):
        assert stranger.get(where).status_code == 403
        assert Client().get(where).status_code == 302
