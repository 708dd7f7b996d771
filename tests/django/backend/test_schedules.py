# SPDX-License-Identifier: MIT
"""`byrote.django.schedule`: what code defines, a worker keeps, and every tick is a run."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import override_settings
from msgspec.structs import replace

from byrote.core.errors import BadOption
from byrote.core.schedule.schedule import StoredSchedule
from byrote.django import compat, schedule
from byrote.django.app import DjangoApp, backend_of
from byrote.django.backend import schedules as periodic
from byrote.django.backend.database import fetch
from byrote.django.models import PeriodicTask, Run
from byrote.store import queries
from tests.django.driving import ROOT, working
from tests.django.shop import tasks
from tests.support import until

type Shop = dict[str, str]

DUMMY = {"BACKEND": "byrote.django.Dummy"}


@pytest.fixture(autouse=True)
def _defined(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test defines is forgotten after it."""
    with monkeypatch.context() as patched:
        patched.setattr(periodic, "DEFINED", {})
        yield


def planned(name: str) -> StoredSchedule | None:
    found = fetch("default", queries.schedules(name=name))
    return found[0] if found else None


def start(shop: Shop, every: str, jitter: str, *words: str) -> None:
    """A worker that runs until it has kept the last of its schedules."""
    kept = int(jitter.removesuffix("us"))
    with working(shop, *words, SHOP_EVERY=every, SHOP_JITTER=jitter):
        until(lambda: PeriodicTask.objects.filter(name="told", jitter_us=kept).exists())


def ticked(name: str) -> list[Any]:
    """Runs that ticks of a schedule have had, with a result."""
    found = Run.objects.filter(labels__schedule=name, status="SUCCESSFUL")
    return list(found.order_by("result_id"))


# -- With a worker -------------------------------------------------------------------------------


def test_what_code_defines_ticks_and_its_runs_have_ordinary_results(shop: Shop) -> None:
    with working(shop, SHOP_EVERY="1s"):
        runs = until(lambda: ticked("beat"))

    result = tasks.add.get_result(str(runs[0].result_id))
    assert (result.status, result.return_value, result.args) == ("SUCCESSFUL", 3, [1, 2])
    kept = planned("beat")
    assert kept is not None
    assert (kept.origin, kept.schedule.timing, kept.schedule.zone) == (
        "code",
        "every 1s",
        "Europe/Berlin",
    )
    assert kept.runs >= 1
    assert planned("reports:beat") is None


def test_a_tick_of_a_task_that_takes_a_context_passes_one(shop: Shop) -> None:
    start(shop, "1h", "0us")
    PeriodicTask.objects.filter(name="told").update(next_at=datetime(2026, 1, 1, tzinfo=UTC))
    with working(shop, SHOP_EVERY="1h"):
        [run] = until(lambda: ticked("told"))

    result = tasks.where.get_result(str(run.result_id))
    assert result.return_value[:2] == [result.id, 1]


def test_two_aliases_in_one_database_keep_apart(shop: Shop) -> None:
    start(shop, "1h", "0us")
    with working(shop, "--backend", "reports", SHOP_EVERY="1h"):
        until(lambda: planned("reports:beat"))
        PeriodicTask.objects.update(next_at=datetime(2026, 1, 1, tzinfo=UTC))
        [run] = until(lambda: ticked("reports:beat"))

    assert {"beat", "told", "reports:beat"} == set(
        PeriodicTask.objects.values_list("name", flat=True)
    )
    result = tasks.add.using(backend="reports").get_result(str(run.result_id))
    assert (result.return_value, result.backend) == (7, "reports")
    with pytest.raises(compat.TaskResultDoesNotExist):
        tasks.add.get_result(str(run.result_id))
    # Any worker beats; only those of its alias execute.
    assert set(Run.objects.exclude(pk=run.pk).values_list("status", flat=True)) == {"READY"}


def test_a_change_by_hand_stays_until_the_code_changes(shop: Shop) -> None:
    start(shop, "1h", "1us")
    found = planned("beat")
    assert found is not None
    other = replace(found.schedule, timing="every 30m")
    fetch("default", queries.save_schedule(other, next_at=found.next_at, replace=True))

    start(shop, "1h", "2us")
    assert PeriodicTask.objects.get(name="beat").timing == "every 30m"
    start(shop, "2h", "3us")
    assert PeriodicTask.objects.get(name="beat").timing == "every 2h"


# -- Definitions ---------------------------------------------------------------------------------


def test_an_app_has_the_schedules_of_its_alias() -> None:
    schedule("nightly", tasks.report, args=("2026-11",), cron="0 3 * * *")
    schedule("often", tasks.note.using(priority=9, max_attempts=4), args=("x",), every="10m")
    schedule("nightly", tasks.report.using(backend="reports"), kwargs={"month": "x"}, every=60)

    nightly, often = DjangoApp(backend_of("default")).schedules
    [other] = DjangoApp(backend_of("reports")).schedules
    assert (nightly.zone, nightly.unique_key) == ("Europe/Berlin", "report:2026-11")
    assert nightly.task == "tests.django.shop.tasks.report"
    assert (often.queue, often.priority, often.max_attempts) == ("mail", 9, 4)
    assert often.unique_key == "schedule:often"
    assert (other.name, other.task) == (
        "reports:nightly",
        "reports:tests.django.shop.tasks.report",
    )
    assert DjangoApp(backend_of("apart")).schedules == []


def test_a_schedule_is_described_exactly_as_a_call() -> None:
    schedule("echo", tasks.echo, args=(1.0, b"two"), kwargs={"n": (3,)}, every="1d")
    [made] = periodic.schedules_of("default")
    spec = backend_of("default").describe(tasks.echo, (1.0, b"two"), {"n": (3,)})

    assert (made.spec_json, made.spec_hash) == (spec.text, spec.digest.hex())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "one of cron, every and at"),
        ({"cron": "0 3 * *"}, "five fields of cron"),
        ({"cron": "99 3 * * *"}, "not a cron expression"),
        ({"cron": "0 0 30 2 *"}, "never comes"),
        ({"every": "10m", "cron": "@daily"}, "one of cron, every and at"),
        ({"every": "10 minutes"}, "Write a duration"),
        ({"every": 0.1}, "between 1 s and 366 days"),
        ({"at": datetime(2026, 12, 24)}, "aware datetime"),  # noqa: DTZ001 -- the point.
        ({"cron": "@daily", "zone": "Mars/Olympus"}, "Unknown time zone 'Mars/Olympus'"),
        ({"every": "1h", "jitter": "2d"}, "A jitter is between"),
        ({"every": "1h", "catch_up": "some"}, "catch_up is"),
        ({"every": "1h", "catch_up": "all"}, "free to overlap"),
        ({"every": "1h", "args": (object(),)}, "object"),
        ({"every": "1h", "name": "no name"}, "not a schedule name"),
        ({"every": "1h", "name": 5}, "not a schedule name"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_defined(how: Any, said: str) -> None:
    name = how.pop("name", "bad")
    with pytest.raises((ValueError, TypeError), match=said):
        schedule(name, tasks.echo, **how)

    assert periodic.DEFINED == {}


def test_only_tasks_are_scheduled_and_they_have_no_moment_of_their_own() -> None:
    with pytest.raises(TypeError, match="@task"):
        schedule("bad", print, every="1h")
    with pytest.raises(TypeError, match="hourly"):
        schedule("bad", tasks.echo, hourly=True)  # type: ignore[call-arg]
    later = tasks.echo.using(run_after=datetime(2027, 1, 1, tzinfo=UTC))
    with pytest.raises(BadOption, match="run_after"):
        schedule("bad", later, every="1h")


def test_a_name_is_defined_once_and_reloading_its_module_is_allowed() -> None:
    for _ in range(2):
        schedule("nightly", tasks.echo, cron="0 3 * * *")
    with pytest.raises(BadOption, match="defined twice"):
        schedule("nightly", tasks.echo, cron="0 4 * * *")


def test_other_backends_take_a_schedule_and_never_run_it() -> None:
    with override_settings(TASKS={"default": DUMMY}):
        schedule("nightly", tasks.echo, args=((1, 2),), cron="0 3 * * *")
        with pytest.raises(BadOption, match="never comes"):
            schedule("bad", tasks.echo, cron="0 0 30 2 *")


DEFINE = """
import sys
from django.conf import settings
backport = ["django_tasks"] if __import__("django").VERSION < (6, 0) else []
settings.configure(
    INSTALLED_APPS=[*backport, "byrote.django"],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "nowhere"}},
    TASKS={"default": {"BACKEND": "byrote.django.Backend"}},
)
import django
django.setup()
from byrote.django import schedule, task

def work(): ...
work = task(work)
before = set(sys.modules)
schedule("often", work, every="10m")
rooms = {name.split(".")[1] for name in set(sys.modules) - before if name.startswith("byrote.")}
assert not rooms & {"cli", "worker", "executors", "service", "embedded"}, rooms
from django.db import connection
assert connection.connection is None
"""


def test_defining_one_imports_little_and_connects_to_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEFINE], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
