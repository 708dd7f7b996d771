# SPDX-License-Identifier: MIT
"""Messages of refusals and failures, and the log of a worker."""

from typing import Any

import django
import psycopg
import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy

from byrote.django import task
from byrote.django.backend.values import plain
from byrote.django.worker.commands import backend_first
from tests.django.driving import drain, manage
from tests.django.shop import tasks
from tests.django.shop.models import Note

type Shop = dict[str, str]

IMMEDIATE = (
    "django.tasks.backends.immediate.ImmediateBackend"
    if django.VERSION >= (6, 0)
    else "django_tasks.backends.immediate.ImmediateBackend"
)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (gettext_lazy("Yes"), r"send str\(x\)"),
        (Note(pk=1, text="a"), "Note.*send its pk"),
        (SimpleLazyObject(lambda: User(pk=1)), "User.*send its pk"),
        (Note.objects.none(), "send a list of pks"),
    ],
    ids=["lazy text", "model", "lazy model", "query"],
)
def test_a_value_of_django_is_refused_with_what_to_send(value: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        plain([value])


def test_a_lazy_object_is_sent_as_what_it_wraps() -> None:
    assert plain({"a": SimpleLazyObject(lambda: "text"), "b": SimpleLazyObject(lambda: [1])}) == {
        "a": "text",
        "b": [1],
    }


@override_settings(TASKS={"default": {"BACKEND": IMMEDIATE}})
def test_options_of_byrote_under_a_backend_of_django_name_the_one_that_knows_them() -> None:
    with pytest.raises(TypeError, match=r"does not support timeout.*byrote\.django\.Immediate"):
        task(timeout="5s")(tasks.add.func)


def test_the_error_of_an_unmigrated_database_names_the_command(shop: Shop, server_url: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute("create database shop_unmigrated")
        url = psycopg.conninfo.make_conninfo(server_url, dbname="shop_unmigrated")
        done = manage({**shop, "SHOP_DATABASE": url}, "byrote", "worker", "--drain")
        admin.execute("drop database shop_unmigrated with (force)")

    assert done.returncode == 3
    assert "Run `python manage.py migrate`." in done.stderr
    assert "HandEnded" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [["--backend", "apart", "runs", "list"], ["runs", "list", "--backend=apart"]],
)
def test_the_backend_is_named_anywhere(shop: Shop, words: list[str]) -> None:
    here, there = tasks.add.enqueue(1, 1), tasks.add.using(backend="apart").enqueue(1, 1)
    done = manage(shop, "byrote", *words)

    assert there.id in done.stdout
    assert here.id not in done.stdout


def test_the_backend_before_the_worker_is_the_workers(shop: Shop) -> None:
    result = tasks.add.using(backend="apart").enqueue(1, 2)
    done = manage(shop, "byrote", "--backend", "apart", "worker", "--drain", "--hands", "1")
    result.refresh()

    assert (done.returncode, result.return_value) == (0, 3)
    assert backend_first(["runs", "--", "--backend", "x"]) == ["runs", "--", "--backend", "x"]
    said = manage(shop, "byrote", "worker", "--help").stdout
    assert "Tasks at once, sync or async" in said


def test_an_error_begins_with_the_frames_of_the_task(shop: Shop) -> None:
    results = [tasks.fail.using(max_attempts=1).enqueue("no"), tasks.afail.enqueue()]
    log = drain(shop, SHOP_DEBUG="yes")

    for result in results:
        result.refresh()
        first = result.errors[0].traceback.splitlines()[1]
        assert "shop/tasks.py" in first.replace("\\", "/")
        assert log.count(f"id={result.id} path={result.task.module_path} state=FAILED") == 1
        assert log.count(f"id={result.id} path={result.task.module_path} state=RUNNING") == 1
    assert "byrote/django/worker/attempt.py" not in log
    assert result.run is not None


def test_a_task_that_prints_nothing_has_no_output(shop: Shop) -> None:
    tasks.add.enqueue(1, 2)
    drain(shop)
    with psycopg.connect(shop["SHOP_DATABASE"]) as db:
        assert db.execute("select count(*) from byrote_outputs").fetchone() == (0,)
