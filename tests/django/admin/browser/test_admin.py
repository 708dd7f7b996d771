# SPDX-License-Identifier: MIT
"""An operator at the admin, in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from byrote.django.admin import replays
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.django.admin import stage
from tests.django.admin.test_periodic import plan
from tests.django.shop import tasks
from tests.support import Db

RUNS = "/admin/byrote/run/"
NAMELESS = """() => [...document.querySelectorAll("main a, main button, main select, main input")]
  .filter(e => e.type !== "hidden" && e.offsetParent !== null)
  .filter(e => !(e.textContent.trim() || e.value && e.type === "submit" || e.ariaLabel
    || e.labels && e.labels.length || e.title))
  .map(e => e.outerHTML)"""

type Open = Callable[..., Any]
type Shoot = Callable[[Any, str], None]


def many(db: Db) -> dict[str, str]:
    """A little of everything."""
    stage.register(db)
    stage.register(db, "web-2-91", host="web-2", pid=91, queues=["default"])
    fetch(
        db,
        queries.heartbeat(
            worker="web-1-77", idle=False, stopping=False, running=5, finished=40_321
        ),
    )
    made = {"archived": stage.archived(db), "dead": stage.dead(db, "card 4242 was refused")}
    made |= {"storied": stage.storied(db), "cancelled": stage.cancelled(db)}
    made |= {"verified": stage.verified(db)}
    made |= {"running": stage.running(db), "waiting": stage.waiting()}
    for n in range(12):
        stage.ready(n, to=f"user{n}@example.com", subject="Welcome to the shop")
    tasks.note.enqueue("a letter")
    return made


def has_rows(page: Any, number: int) -> None:
    """Wait until the list has so many."""
    rows = "n => document.querySelectorAll('#result_list tbody tr').length === n"
    page.wait_for_function(rows, arg=number)


def test_a_dead_run_is_found_read_and_retried(
    root: Client, db: Db, open_page: Open, shoot: Shoot
) -> None:
    made = many(db)
    page = open_page(root)
    page.goto("/admin/")
    page.click("text=Runs")
    shoot(page, "list")

    page.click("#changelist-filter >> text=Failed")
    shoot(page, "list-failed")
    page.click(f"#result_list a[href*='{made['dead']}']")
    shoot(page, "dead")
    assert "card 4242 was refused" in page.inner_text("main")
    assert stage.TRACEBACK in page.inner_text(".byrote-attempt pre")

    page.click("button:text-is('Retry')")

    assert "1 run retried." in page.inner_text(".messagelist")
    assert "ready" in page.inner_text(".byrote-facts")
    assert stage.status_of(db, made["dead"]) == "READY"
    page.click("text=History")
    assert "Retry." in page.inner_text("main")


def test_selected_runs_are_cancelled_from_the_list(
    root: Client, db: Db, open_page: Open, shoot: Shoot
) -> None:
    wanted = [stage.ready(1), stage.ready(2)]
    other = stage.ready(3)
    page = open_page(root)
    page.goto(RUNS)
    for run_id in wanted:
        page.check(f"input[value='{run_id}']")
    page.select_option("select[name=action]", "cancel")
    page.click(".actions button")

    assert "2 runs cancelled" in page.inner_text(".messagelist")
    assert [stage.status_of(db, run_id) for run_id in wanted] == ["CANCELLED", "CANCELLED"]
    assert stage.status_of(db, other) == "READY"
    shoot(page, "list-cancelled")


def test_a_replay_by_a_second_click_and_by_going_back_is_one_replay(
    root: Client, db: Db, open_page: Open
) -> None:
    original = stage.successful(db)
    page = open_page(root)
    page.goto(f"{RUNS}{original}/change/")
    form = page.locator("form[action*='/do/replay/']")
    sent = form.evaluate("f => Object.fromEntries(new FormData(f))")
    page.dblclick("button:text-is('Replay')", no_wait_after=True)
    page.wait_for_selector("text=Replay of")
    page.request.post(f"{RUNS}{original}/do/replay/", form=sent, headers={"Referer": page.url})

    assert len(fetch(db, queries.runs())) == 2
    page.click(f"a:text-is('{original}')")
    assert "Replays" in page.inner_text(".byrote-facts")


def test_a_run_is_verified_and_its_verdict_read(
    root: Client, db: Db, open_page: Open, shoot: Shoot
) -> None:
    original = stage.successful(db, '{"total":5}')
    page = open_page(root)
    page.goto(f"{RUNS}{original}/change/")
    page.dblclick("button:text-is('Replay and verify')", no_wait_after=True)
    page.wait_for_selector("text=reload this page to see the verdict")
    shoot(page, "verify-asked")
    assert len(fetch(db, queries.runs())) == 2

    leased = stage.lease(db, task=replays.PATH)
    stage.settle(db, stage.success(leased, stage.verdict_json(original)))
    page.reload()
    shoot(page, "verify-differs")
    told = page.inner_text("section:has(#byrote-verdicts)")
    assert "differs" in told
    assert "/total" in told
    page.click(f"a:text-is('{leased.id}')")
    assert "Verifies" in page.inner_text(".byrote-facts")
    page.click(f"a:text-is('{original}')")
    page.wait_for_selector("#byrote-verdicts")


def test_deleting_asks_and_can_be_thought_better_of(
    root: Client, db: Db, open_page: Open, shoot: Shoot
) -> None:
    run_id = stage.dead(db)
    page = open_page(root)
    page.goto(f"{RUNS}{run_id}/change/")
    page.click("button:text-is('Delete…')")
    shoot(page, "delete")
    page.click("text=Go back")
    assert stage.status_of(db, run_id) == "FAILED"

    page.goto(f"{RUNS}{run_id}/change/")
    page.click("button:text-is('Delete…')")
    page.click("button:text-is('Delete')")
    assert "1 run deleted." in page.inner_text(".messagelist")
    assert stage.status_of(db, run_id) is None


def test_all_the_dead_of_a_queue_are_requeued(
    root: Client, db: Db, open_page: Open, shoot: Shoot
) -> None:
    for n in range(3):
        stage.dead(db, f"refused {n}")
    page = open_page(root)
    page.goto("/admin/byrote/queue/")
    page.click("a[href*='status=FAILED']")
    page.click("text=Requeue all of these")
    shoot(page, "requeue")
    page.click("button:text-is('Requeue')")

    assert "3 dead runs were requeued." in page.inner_text(".messagelist")
    assert {run.status for run in fetch(db, queries.runs())} == {"READY"}


def test_a_queue_is_paused_and_resumed(root: Client, db: Db, open_page: Open, shoot: Shoot) -> None:
    many(db)
    page = open_page(root)
    page.goto("/admin/byrote/queue/")
    page.click("tr:has-text('mail') >> button")
    shoot(page, "queues")
    assert "paused" in page.inner_text("tr:has-text('mail')")
    page.click("tr:has-text('mail') >> button:has-text('Resume')")
    assert "paused" not in page.inner_text("tr:has-text('mail')")


def test_a_periodic_task_is_added_mended_run_and_deleted(
    root: Client, db: Db, open_page: Open, shoot: Shoot
) -> None:
    page = open_page(root)
    page.goto("/admin/byrote/periodictask/")
    page.click("main >> text=add a periodic task")
    page.fill("#id_name", "nightly")
    page.select_option("#id_task", stage.ECHO)
    page.fill("#id_timing", "3 o'clock")
    page.fill("#id_kwargs", '{"day": 1}')
    page.click("button:text-is('Add')")
    shoot(page, "periodic-refused")
    assert "five fields of cron" in page.inner_text(".errors")
    assert page.input_value("#id_kwargs") == '{"day": 1}'

    page.fill("#id_timing", "0 3 * * *")
    page.click("button:text-is('Add')")
    assert "nightly is added." in page.inner_text(".messagelist")
    assert page.locator(".byrote-timeline li").count() == 5
    page.click("button:text-is('Run now')")
    page.click(".messagelist a")
    assert "schedule=nightly" in page.inner_text(".byrote-facts")

    page.goto("/admin/byrote/periodictask/nightly/change/")
    page.click("button:text-is('Pause')")
    shoot(page, "periodic-paused")
    assert "paused" in page.inner_text(".byrote-facts")
    page.click("button:text-is('Delete…')")
    page.click("button:text-is('Delete')")
    assert "nightly is deleted." in page.inner_text(".messagelist")


def test_the_list_is_narrowed_by_label_and_searched(
    root: Client, db: Db, open_page: Open, shoot: Shoot
) -> None:
    wanted, other = stage.ready(1), stage.ready(2)
    labelled = 'update byrote_task_runs set labels = \'{"order": "42"}\' where result_id = %s'
    db.execute(labelled, (wanted,))
    page = open_page(root)
    page.goto(f"{RUNS}?status=READY")
    page.fill("#byrote-label", "order=42")
    page.click(".byrote-label input[type=submit]")
    has_rows(page, 1)
    assert "status=READY" in page.url
    shoot(page, "list-label")

    page.goto(RUNS)
    page.fill("#searchbar", other)
    page.press("#searchbar", "Enter")
    has_rows(page, 1)


def test_pages_are_turned(
    root: Client, open_page: Open, shoot: Shoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byrote.django.admin.runs.RunAdmin.list_per_page", 5)
    for n in range(12):
        stage.ready(n)
    page = open_page(root)
    page.goto(RUNS)
    page.click("a[rel=next]")
    shoot(page, "list-page-2")
    page.click("a[rel=next]")
    has_rows(page, 2)
    page.click("a[rel=prev]")
    has_rows(page, 5)
    page.click("a[rel=prev]")
    page.wait_for_selector("a[rel=prev]", state="detached")
    has_rows(page, 5)


@pytest.fixture(params=[(theme, width) for theme in ("light", "dark") for width in (1300, 420)])
def look(request: pytest.FixtureRequest) -> tuple[str, int]:
    """A theme, and the width of a screen or a phone."""
    return request.param  # type: ignore[no-any-return]


def test_every_page_is_readable_wide_and_narrow_light_and_dark(
    root: Client, db: Db, open_page: Open, shoot: Shoot, *, look: tuple[str, int]
) -> None:
    made = many(db)
    theme, width = look
    page = open_page(root, color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    where = {"runs": RUNS, "queues": "/admin/byrote/queue/", "workers": "/admin/byrote/worker/"}
    where |= {
        name: f"{RUNS}{made[name]}/change/"
        for name in ("storied", "waiting", "running", "verified")
    }
    where |= {"periodic-list": "/admin/byrote/periodictask/", "periodic": f"{plan(db)}change/"}
    where |= {"periodic-add": "/admin/byrote/periodictask/add/"}
    for name, address in where.items():
        page.goto(address)
        shoot(page, f"{theme}-{width}-{name}")
        assert page.locator("h1").count() >= 1
        assert page.evaluate(NAMELESS) == []
        if name != "runs":  # Django's own list scrolls on a phone.
            assert page.evaluate("document.documentElement.scrollWidth") <= width
