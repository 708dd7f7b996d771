# SPDX-License-Identifier: MIT
"""Periodic tasks at the admin: seen, added, changed, paused, run now, deleted."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from byrote.core.schedule.schedule import StoredSchedule, make_schedule
from byrote.core.spec import Delivery, describe
from byrote.django.admin import periodic_form
from byrote.django.app import backend_of
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.django.admin import stage
from tests.django.admin.conftest import person
from tests.django.shop import tasks
from tests.support import Db

WHERE = "/admin/byrote/periodictask/"
SEES = ("view_periodictask",)
WHAT = {
    "timing": "0 3 * * *", "zone": "Europe/Berlin", "jitter": "0s", "catch_up": "one",
    "queue": "default", "priority": "0", "max_attempts": "1", "args": "[1]", "kwargs": "{}",
}  # fmt: skip
NEW = {
    **WHAT,
    "name": "new_one",
    "task": stage.ECHO,
    "queue": "",
    "priority": "",
    "max_attempts": "",
}


def plan(
    db: Db, name: str = "daily_25", *, task: Any = tasks.echo, code: bool = False, **timing: Any
) -> str:
    """A periodic task that echoes; the address of its page."""
    spec = backend_of("default").describe(task, (1.0, "two"), {"big": 10**20})
    made = make_schedule(name, spec, **(timing or {"cron": "0 3 * * *"}))
    [now] = fetch(db, queries.now())
    if code:
        fetch(db, queries.announce(made, now))
    else:
        fetch(db, queries.save_schedule(made, next_at=now + timedelta(hours=1)))
    return page_of(name)


def page_of(name: str) -> str:
    return f"{WHERE}{name.replace('_', '_5F')}/"


def kept(db: Db, name: str = "daily_25") -> StoredSchedule:
    [found] = fetch(db, queries.schedules(name=name))
    return found


def names(db: Db) -> list[str]:
    return [found.schedule.name for found in fetch(db, queries.schedules())]


def text(answer: Any) -> str:
    assert answer.status_code == 200
    return str(answer.content.decode())


# -- Seeing --------------------------------------------------------------------------------------


def test_the_list_shows_task_time_and_origin(root: Client, db: Db) -> None:
    plan(db)
    plan(db, "often", code=True, every="10m")
    plan(db, "broken")
    run_id = stage.ready()
    db.execute(
        "update byrote_periodic_tasks set last_at = next_at, last_run = %s, runs = 12, skipped = 34"
        " where name = 'often'",
        (run_id,),
    )
    fetch(db, queries.pause_schedule("broken", fault="no <zone>"))

    page = text(root.get(WHERE))

    for told in ("daily_25", "often", "0 3 * * *", "every 10m", "in code", "manually", "34"):
        assert told in page
    assert f"/admin/byrote/run/{run_id}/change/" in page
    assert "no &lt;zone&gt;" in page
    assert "?label=schedule%3Doften" in page
    assert "There are no periodic tasks" not in page


def test_a_page_shows_the_coming_ticks_and_links_to_its_runs(root: Client, db: Db) -> None:
    where = plan(db, cron="30 3 24 12 *", zone="Europe/Berlin")
    root.post(f"{where}do/run/")

    page = text(root.get(f"{where}change/"))

    assert page.count("-12-24 03:30:00 CET") == 5
    assert "100000000000000000000" in page
    listed = text(root.get("/admin/byrote/run/?label=schedule%3Ddaily_25"))
    assert "1 run on this page" in listed


def test_an_empty_list_has_a_message_and_an_unknown_page_is_not_found(root: Client) -> None:
    assert "There are no periodic tasks" in text(root.get(WHERE))
    assert root.get(f"{WHERE}nothing/change/").status_code == 404


def test_pages_need_their_permissions(db: Db) -> None:
    where = plan(db)
    stranger, watcher = person(), person("view_worker", sees=SEES)

    for address in (WHERE, f"{WHERE}add/", f"{where}change/"):
        assert stranger.get(address).status_code == 403
    assert "Add periodic task" not in text(watcher.get(WHERE))
    page = text(watcher.get(f"{where}change/"))
    assert "Save" not in page
    assert "<button" not in page.partition("<main")[2]
    assert watcher.get(f"{WHERE}add/").status_code == 403
    assert watcher.post(f"{WHERE}add/", NEW).status_code == 403
    assert watcher.post(f"{where}change/", WHAT).status_code == 403
    for verb in ("pause", "resume", "run", "delete"):
        assert watcher.post(f"{where}do/{verb}/", {"confirmed": "yes"}).status_code == 403
    assert names(db) == ["daily_25"]


# -- Changing ------------------------------------------------------------------------------------


def test_what_is_saved_unchanged_stays_byte_for_byte(root: Client, db: Db) -> None:
    where = plan(db, task=tasks.fail.using(timeout="3s"), cron="0 3 * * *", jitter="90s")
    before = kept(db)
    form = root.get(f"{where}change/").context_data["form"]
    said = {name: form[name].value() for name in form.fields if name != "overlap"}

    root.post(f"{where}change/", said)

    after = kept(db)
    assert after.schedule == before.schedule
    assert after.next_at == before.next_at
    assert after.changed_at > before.changed_at


def test_everything_can_be_changed_and_is_described_as_a_call_is(db: Db) -> None:
    where = plan(db)
    said = {
        "timing": " every  90m ", "zone": "UTC", "jitter": "5m", "overlap": "on",
        "catch_up": "all", "queue": "mail", "priority": "-7", "max_attempts": "3",
        "args": '[1.0, "ä"]', "kwargs": '{\r\n"b": null}',
    }  # fmt: skip
    page = person("change_periodictask", sees=SEES).post(f"{where}change/", said, follow=True)

    assert "daily_25 is changed." in text(page)
    after = kept(db)
    made = after.schedule
    spec = describe(stage.ECHO, 1, [1.0, "ä"], {"b": None}, delivery=Delivery())
    assert (made.spec_json, made.spec_hash) == (spec.text, spec.digest.hex())
    assert (made.timing, made.zone, made.jitter_us) == ("every 1h30m", "UTC", 300_000_000)
    assert (made.overlap, made.catch_up) == (True, "all")
    assert (made.queue, made.priority, made.max_attempts) == ("mail", -7, 3)
    assert after.next_at is not None
    assert timedelta() < after.next_at - after.now <= timedelta(minutes=90)
    assert after.origin == "hand"


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("timing", "0 3 * *", "five fields of cron"),
        ("timing", "", "This field is required"),
        ("zone", "Mars/Olympus", "Unknown time zone"),
        ("jitter", "a while", "Write a duration"),
        ("jitter", "2d", "A jitter is between"),
        ("catch_up", "all", "free to overlap"),
        ("queue", "made-up", "not among the QUEUES"),
        ("priority", "101", "less than or equal to 100"),
        ("max_attempts", "0", "greater than or equal to 1"),
        ("args", "[1,", "Malformed JSON"),
        ("args", "{}", "Write an array"),
        ("kwargs", "[]", "Write an object"),
        ("kwargs", '{"a": NaN}', "NaN"),
        ("kwargs", '{"a": 1, "a": 2}', "twice"),
    ],
)
def test_bad_input_is_reported_and_nothing_is_lost(
    root: Client, db: Db, field: str, value: str, *, told: str
) -> None:
    where = plan(db)
    before = kept(db)
    said = {**WHAT, "priority": "42", "kwargs": '{"kept": true}', field: value}

    page = root.post(f"{where}change/", said)

    assert told in text(page).replace("&#x27;", "'")
    shown = {name: page.context_data["form"][name].value() for name in said}
    assert shown == said
    assert kept(db).schedule == before.schedule


def test_a_task_keeps_its_own_unique_key(root: Client, db: Db) -> None:
    spec = backend_of("default").describe(tasks.report, ("2026-11",), {})
    made = make_schedule("report", spec, every="1d")
    fetch(db, queries.save_schedule(made, next_at=None))
    where = page_of("report")

    root.post(f"{where}change/", {**WHAT, "args": '["2026-12"]'})
    assert kept(db, "report").schedule.unique_key == "report:2026-12"
    page = root.post(f"{where}change/", {**WHAT, "args": '["2026-12"]', "overlap": "on"})
    assert "cannot overlap" in text(page)
    page = root.post(f"{where}change/", {**WHAT, "args": "[]"})
    assert "missing a required argument" in text(page)


def test_one_whose_task_is_gone_can_still_be_changed(root: Client, db: Db) -> None:
    spec = describe("report", 3, [], {}, delivery=Delivery(queue="elsewhere"))
    fetch(db, queries.save_schedule(make_schedule("plain", spec, every="1d"), next_at=None))

    root.post(f"{page_of('plain')}change/", {**WHAT, "queue": "any"})

    made = kept(db, "plain").schedule
    assert (made.task, made.version, made.queue) == ("report", 3, "any")


# -- Adding --------------------------------------------------------------------------------------


def test_one_is_added_with_the_policy_of_its_task(db: Db) -> None:
    ada = person("add_periodictask", sees=SEES)
    assert "Europe/Berlin" in text(ada.get(f"{WHERE}add/"))
    fail = stage.ECHO.replace("echo", "fail")

    page = ada.post(f"{WHERE}add/", {**NEW, "task": fail, "priority": "5"}, follow=True)

    assert "new_one is added." in text(page)
    added = kept(db, "new_one")
    made = added.schedule
    assert (made.task, made.queue, made.priority, made.max_attempts) == (fail, "default", 5, 3)
    assert (made.zone, added.origin) == ("Europe/Berlin", "hand")
    assert added.next_at is not None


def test_one_is_added_for_another_alias_of_the_database(root: Client, db: Db) -> None:
    said = {**NEW, "task": f"reports:{stage.ECHO}", "queue": "made-up", "max_attempts": "2"}
    root.post(f"{WHERE}add/", said)

    made = kept(db, "new_one").schedule
    assert (made.task, made.queue, made.max_attempts) == (said["task"], "made-up", 2)
    assert "apart:" not in text(root.get(f"{WHERE}add/"))
    assert all(name.startswith("apart:") for name in periodic_form.tasks_of("other"))


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("name", "no name", "is not a schedule name"),
        ("name", "x" * 151, "up to 150 characters"),
        ("name", "daily_25", "already"),
        ("task", "tests.gone", "Select a valid choice"),
        ("queue", "made-up", "queue"),
        ("timing", "every 1ms", "between 1 s and 366 days"),
    ],
)
def test_a_schedule_that_cannot_be_added_is_reported_and_nothing_is_lost(
    root: Client, db: Db, field: str, value: str, *, told: str
) -> None:
    plan(db)
    said = {**NEW, "args": '["kept"]', field: value}

    page = root.post(f"{WHERE}add/", said)

    assert told in text(page)
    assert page.context_data["form"].errors
    assert {name: page.context_data["form"][name].value() for name in said} == said
    assert names(db) == ["daily_25"]


# -- Buttons -------------------------------------------------------------------------------------


def test_it_is_paused_and_resumed_and_repeating_it_is_harmless(db: Db) -> None:
    where = plan(db)
    ada = person("pause_periodictask", sees=SEES)
    for _ in range(2):
        page = text(ada.post(f"{where}do/pause/", follow=True))
        assert "daily_25 is paused." in page
        assert "The periodic task is paused" in page
    since = kept(db).paused_at
    ada.post(f"{where}do/pause/")
    assert kept(db).paused_at == since is not None

    ada.post(f"{where}do/resume/")
    after = kept(db)
    ada.post(f"{where}do/resume/")
    assert after.paused_at is None
    assert after.next_at == kept(db).next_at
    assert ada.post(f"{where}do/run/").status_code == 403


def test_one_that_cannot_go_on_is_not_resumed_and_saving_it_mends_it(root: Client, db: Db) -> None:
    where = plan(db)
    db.execute("update byrote_periodic_tasks set zone = 'Mars/Olympus'")
    fetch(db, queries.pause_schedule("daily_25", fault="no such zone"))

    page = text(root.post(f"{where}do/resume/", follow=True))
    assert "daily_25 cannot be resumed" in page
    assert kept(db).fault == "no such zone"
    root.post(f"{where}change/", WHAT)
    assert (kept(db).fault, kept(db).paused_at) == (None, None)


def test_run_now_enqueues_one_and_by_the_same_page_no_second(db: Db) -> None:
    where = plan(db, every="1h", overlap=True)
    ada = person("run_periodictask", sees=(*SEES, "view_run"))
    nonce = ada.get(f"{where}change/").context_data["nonce"]

    first = text(ada.post(f"{where}do/run/", {"nonce": nonce}, follow=True))
    again = text(ada.post(f"{where}do/run/", {"nonce": nonce}, follow=True))

    [run] = fetch(db, queries.runs())
    assert f'A run of daily_25 is enqueued: <a href="/admin/byrote/run/{run.id}/change/"' in first
    assert "This page has already enqueued a run of daily_25" in again
    assert (run.task, run.labels) == (stage.ECHO, {"schedule": "daily_25"})
    assert run.spec_hash == kept(db).schedule.spec_hash
    ada.post(f"{where}do/run/", {"nonce": ada.get(f"{where}change/").context_data["nonce"]})
    assert len(fetch(db, queries.runs())) == 2


def test_run_now_names_the_unfinished_earlier_run(root: Client, db: Db) -> None:
    where = plan(db)
    root.post(f"{where}do/run/")
    page = text(root.post(f"{where}do/run/", follow=True))

    [run] = fetch(db, queries.runs())
    assert "An earlier run of daily_25 is unfinished" in page
    assert f"/admin/byrote/run/{run.id}/change/" in page
    stage.settle(db, stage.success(stage.lease(db)))
    assert "is enqueued" in text(root.post(f"{where}do/run/", follow=True))


def test_deleting_asks_for_confirmation_and_deleting_twice_is_reported(db: Db) -> None:
    where = plan(db)
    ada = person("delete_periodictask", sees=SEES)

    assert "This cannot be undone" in text(ada.post(f"{where}do/delete/"))
    assert names(db) == ["daily_25"]
    for told in ("daily_25 is deleted.", "There is no periodic task"):
        page = ada.post(f"{where}do/delete/", {"confirmed": "yes"}, follow=True)
        assert told in text(page)
    assert names(db) == []


def test_what_code_defines_is_not_deleted_but_paused(root: Client, db: Db) -> None:
    where = plan(db, code=True)

    page = root.post(f"{where}do/delete/", {"confirmed": "yes"}, follow=True)

    assert "Pause it instead" in text(page)
    assert names(db) == ["daily_25"]


def test_buttons_are_for_posting_with_a_token_and_known_verbs_only(root: Client, db: Db) -> None:
    where = plan(db)
    assert root.get(f"{where}do/pause/").status_code == 405
    assert root.post(f"{where}do/explode/").status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = root.cookies
    for address in (f"{where}do/pause/", f"{where}change/", f"{WHERE}add/"):
        assert strict.post(address, NEW).status_code == 403
    assert kept(db).paused_at is None


def test_the_admin_log_has_user_and_action(root: Client, db: Db) -> None:
    root.post(f"{WHERE}add/", NEW)
    where = page_of("new_one")
    root.post(f"{where}change/", WHAT)
    for verb in ("run", "pause", "resume"):
        root.post(f"{where}do/{verb}/")

    page = text(root.get(f"{where}history/"))

    for told in ("Added.", "Changed.", "Run now: ", "Paused.", "Resumed."):
        assert told in page
    assert f"{where}change/" in text(root.get("/admin/"))
