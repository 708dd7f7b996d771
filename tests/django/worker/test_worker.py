# SPDX-License-Identifier: MIT
"""`manage.py byrote worker` as a process: queues, aliases, signals, ends, and other commands."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from byrote.django import compat, enqueue_many
from byrote.django.models import Run
from tests.django.driving import RUNS_LEFT, drain, manage, working
from tests.django.shop import tasks
from tests.django.shop.models import Note
from tests.support import until

type Shop = dict[str, str]

CUT = """
select pg_terminate_backend(pid)
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and application_name like 'byrote %'
"""


def statuses() -> dict[str, str]:
    return dict(Run.objects.values_list("task_path", "status"))


def test_a_worker_executes_only_what_belongs_to_its_alias_and_queues(shop: Shop) -> None:
    here, mail = tasks.add.enqueue(1, 1), tasks.note.enqueue("mail")
    there = tasks.add.using(backend="reports", queue_name="made-up").enqueue(2, 2)

    drain(shop, "--queues", "mail")
    assert [r.status for r in refreshed(here, mail, there)] == ["READY", "SUCCESSFUL", "READY"]
    drain(shop, "--backend", "reports", code=RUNS_LEFT)
    assert [r.status for r in refreshed(here, there)] == ["READY", "SUCCESSFUL"]
    assert there.return_value == 4
    assert there.backend == "reports"


def refreshed(*results: Any) -> list[Any]:
    for result in results:
        result.refresh()
    return list(results)


def test_a_backend_in_another_database_has_its_own_worker(shop: Shop) -> None:
    result = tasks.add.using(backend="apart").enqueue(1, 2)
    drain(shop, "--backend", "apart")
    result.refresh()

    assert result.return_value == 3


def test_a_project_without_time_zones_works_as_well(shop: Shop) -> None:
    results = [tasks.add.enqueue(1, 2), tasks.where.enqueue(), tasks.fail_first.enqueue()]
    drain(shop, SHOP_USE_TZ="no")

    assert [r.status for r in refreshed(*results)] == ["SUCCESSFUL"] * 3


def test_a_task_that_cannot_be_imported_stays_for_those_who_can(shop: Shop) -> None:
    gone, later = tasks.add.enqueue(1, 1), tasks.add.using(run_after=far()).enqueue(1, 1)
    with connection.cursor() as cursor:
        cursor.execute(
            "update byrote_task_runs set task_path = 'shop.gone.task' where result_id = %s",
            [gone.id],
        )
    drain(shop, code=RUNS_LEFT)

    assert set(Run.objects.values_list("status", flat=True)) == {"READY", "WAITING"}
    with pytest.raises(compat.TaskResultDoesNotExist, match=r"shop\.gone\.task"):
        gone.refresh()
    later.refresh()
    assert later.task.run_after is not None


def far() -> Any:
    return timezone.now() + timezone.timedelta(days=1)


def test_receivers_get_the_stored_outcome_from_the_backend_class(shop: Shop) -> None:
    sent = [tasks.add.enqueue(1, 2), tasks.wait.enqueue(3), tasks.fail.enqueue("no")]
    cut = tasks.apart.enqueue("apart")
    log = drain(shop, SHOP_RECEIVERS="yes")
    crashed = tasks.crash.enqueue()  # Separate: its crash would take unreported tasks along.
    drain(shop, SHOP_RECEIVERS="yes")
    refreshed(*sent, crashed, cut)

    told = [json.loads(n.text) for n in Note.objects.order_by("id") if n.text.startswith("{")]
    started = [t["task"] for t in told if t["what"] == "started"]
    finished = {t["task"]: t for t in told if t["what"] == "finished"}
    assert sorted(started) == sorted(["add", "wait", *["fail"] * 3, "crash", "apart"])
    assert {name: t["status"] for name, t in finished.items()} == {
        "add": "SUCCESSFUL",
        "wait": "SUCCESSFUL",
        "fail": "FAILED",
        "crash": "FAILED",
        "apart": "SUCCESSFUL",
    }
    assert len([t for t in told if t["what"] == "finished"]) == 5
    assert all(t["sender"] and t["same"] and t["status"] == t["stored"] for t in told)
    assert "a receiver that fails" in log
    assert [r.status for r in sent] == ["SUCCESSFUL", "SUCCESSFUL", "FAILED"]


def test_receivers_are_called_for_tasks_whose_hand_was_replaced(shop: Shop) -> None:
    results = [tasks.add.enqueue(n, n) for n in range(6)]
    drain(shop, "--max-tasks", "2", SHOP_RECEIVERS="yes")

    assert all(r.is_finished for r in refreshed(*results))
    told = [json.loads(note.text) for note in Note.objects.all()]
    assert len([t for t in told if t["what"] == "finished"]) == 6


def test_a_task_with_a_memo_answers_the_same_call_at_once(shop: Shop) -> None:
    first = [tasks.remembered.enqueue(2), tasks.aremembered.enqueue(2)]
    drain(shop)
    refreshed(*first)
    [again, other] = [tasks.remembered.enqueue(2), tasks.remembered.enqueue(3)]
    [many, _] = enqueue_many([(tasks.aremembered, (2,), {}), (tasks.aremembered, (3,), {})])

    assert (again.status, again.return_value) == ("SUCCESSFUL", first[0].return_value)
    assert (many.status, many.return_value) == ("SUCCESSFUL", first[1].return_value)
    assert str(again.run.memo_of) == first[0].id
    assert other.status == "READY"


def test_sigterm_lets_a_running_task_finish(shop: Shop, tmp_path: Path) -> None:
    result = tasks.hold.enqueue(str(tmp_path), "slow")
    with working(shop) as worker:
        until((tmp_path / "slow.begun").exists, within=60)
        worker.send_signal(signal.SIGTERM)
        (tmp_path / "slow.go").touch()
        assert worker.wait(60) == 0
    result.refresh()

    assert result.return_value == "slow"


def test_runs_of_a_killed_worker_go_on_elsewhere_within_the_lease(
    shop: Shop, tmp_path: Path
) -> None:
    result = tasks.hold.enqueue(str(tmp_path), "lost")
    with working(shop, "--lease", "2s") as worker:
        until((tmp_path / "lost.begun").exists, within=60)
        worker.kill()
        worker.wait()
    (tmp_path / "lost.go").touch()
    with working(shop, "--lease", "2s"):
        until(lambda: refreshed(result)[0].is_finished, within=60)

    assert result.return_value == "lost"
    assert len(set(result.worker_ids)) == 2


def test_drains_alone_take_up_the_run_of_a_killed_worker(shop: Shop, tmp_path: Path) -> None:
    """A project whose workers are started by cron has none that stays."""
    result = tasks.hold.enqueue(str(tmp_path), "lost")
    with working(shop) as worker:
        until((tmp_path / "lost.begun").exists, within=60)
        worker.kill()
        worker.wait()
    (tmp_path / "lost.go").touch()
    assert "1 run is being executed by other workers" in drain(shop)
    with connection.cursor() as cursor:
        cursor.execute("update byrote_task_runs set leased_until = now()")
    drain(shop)

    assert refreshed(result)[0].return_value == "lost"
    assert len(set(result.worker_ids)) == 2


def test_a_worker_whose_connections_are_cut_goes_on(shop: Shop, tmp_path: Path) -> None:
    held = tasks.hold.enqueue(str(tmp_path), "held")
    with working(shop):
        until((tmp_path / "held.begun").exists)
        with connection.cursor() as cursor:
            cursor.execute(CUT)
            assert len(cursor.fetchall()) >= 3  # Those that claim, renew and finish.
        later = tasks.note.enqueue("later")
        (tmp_path / "held.go").touch()
        until(lambda: all(r.is_finished for r in refreshed(held, later)))

    assert held.return_value == "held"
    assert [len(r.worker_ids) for r in (held, later)] == [1, 1]


def test_async_tasks_have_threads_of_their_own(shop: Shop, tmp_path: Path) -> None:
    """One thread for all of them would let the first wait for ever for the others."""
    results = [tasks.meet.enqueue(str(tmp_path), f"m{n}", 5) for n in range(5)]
    drain(shop)

    assert [r.return_value for r in refreshed(*results)] == [f"m{n}" for n in range(5)]
    assert Note.objects.count() == 5


def test_changed_code_starts_a_new_worker_that_lets_the_old_finish(
    shop: Shop, tmp_path: Path
) -> None:
    code = Path(tasks.__file__).with_name("touched.py")
    code.write_text("# SPDX-License-Identifier: MIT\n", encoding="utf-8")
    try:
        first = tasks.hold.enqueue(str(tmp_path), "first")
        with working(shop, "--reload") as worker:
            until((tmp_path / "first.begun").exists, within=60)
            code.write_text("# SPDX-License-Identifier: MIT\n# changed\n", encoding="utf-8")
            until(stopping, within=60)
            (tmp_path / "first.go").touch()
            second = tasks.add.enqueue(1, 2)
            until(lambda: refreshed(second)[0].is_finished, within=60)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(60) == 0
        refreshed(first)
    finally:
        code.unlink()

    assert (first.return_value, first.attempts) == ("first", 1)
    assert second.worker_ids[0] != first.worker_ids[0]


def stopping() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from byrote_workers where stopping")
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backend", "nowhere"], "There are: default, reports, apart"),
        (["--queues", "typo"], "not among the QUEUES"),
        (["--concurrency", "0"], "--concurrency"),
        (["--max-rss", "much"], "512MB"),
    ],
)
def test_a_wrong_option_is_refused_with_the_right_one(
    shop: Shop, words: list[str], said: str
) -> None:
    done = manage(shop, "byrote", "worker", *words)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_plain_commands_work_on_the_database_of_the_alias(shop: Shop) -> None:
    here, there = tasks.add.enqueue(1, 1), tasks.add.using(backend="apart").enqueue(1, 1)

    listed = manage(shop, "byrote", "runs", "list", "--json")
    assert [json.loads(line)["id"] for line in listed.stdout.splitlines()] == [here.id]
    listed = manage(shop, "byrote", "--backend", "apart", "runs", "list", "--json")
    assert [json.loads(line)["id"] for line in listed.stdout.splitlines()] == [there.id]
    assert manage(shop, "byrote", "migrate", "--check").returncode == 0
    checked = manage(shop, "byrote", "verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert manage(shop, "byrote", "runs", "cancel", here.id).returncode == 0
    here.refresh()
    assert here.status == compat.TaskResultStatus.FAILED
    assert here.errors[0].exception_class.__name__ == "TaskCancelled"
