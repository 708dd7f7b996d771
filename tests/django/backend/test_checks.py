# SPDX-License-Identifier: MIT
from typing import Any

import pytest
from django.core.checks import Tags, run_checks
from django.db import connection, connections
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from byrote.django import compat
from byrote.django.schema import checks
from tests.django.settings import INSTALLED_APPS, TASKS


def found(**backend: Any) -> set[str]:
    """Ids of what the checks find in a project with this backend alone."""
    settings = {"default": {"BACKEND": "byrote.django.Backend", **backend}}
    with override_settings(TASKS=settings):
        return {m.id for m in run_checks() if m.id.startswith("byrote.")}


def test_checks_of_a_sound_project_find_nothing_and_query_no_database() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert found() == set()

    assert len(queries) == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"MAX_ATEMPTS": 3}, "byrote.E002"),
        ({"TIMEOUT": "soon"}, "byrote.E002"),
        ({"TIMEOUT": -1}, "byrote.E002"),
        ({"MAX_ATTEMPTS": 0}, "byrote.E002"),
        ({"MAX_ATTEMPTS": True}, "byrote.E002"),
        ({"BACKOFF": "sometimes"}, "byrote.E002"),
        ({"LISTEN": "no"}, "byrote.E002"),
        ({"RETENTION": "7d"}, "byrote.E002"),
        ({"RETENTION": {"done": "7d"}}, "byrote.E002"),
        ({"RETENTION": {"successful": "1h"}}, "byrote.E002"),
        ({"RETENTION": {"failed": "soon"}}, "byrote.E002"),
        ({"DATABASE": "nowhere"}, "byrote.E003"),
        ({"DATABASE": "other"}, "byrote.W002"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], expected: str) -> None:
    assert found(OPTIONS=options) == {expected}


def test_a_queue_that_cannot_be_named_is_found() -> None:
    assert found(QUEUES=["my queue"]) == {"byrote.E006"}


def test_a_project_without_the_app_gets_an_error_that_names_it() -> None:
    apps = [app for app in INSTALLED_APPS if app != "byrote.django"]
    with override_settings(INSTALLED_APPS=apps):
        assert found() == {"byrote.E001"}


def test_another_database_than_postgresql_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections["default"], "vendor", "sqlite")

    assert found() == {"byrote.E004"}


def test_psycopg2_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        __name__ = "psycopg2"

    monkeypatch.setattr(connections["default"], "Database", Old())

    assert found() == {"byrote.E005"}


def test_listening_behind_a_pooler_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "PORT", "6432")

    assert found() == {"byrote.W001"}
    assert found(OPTIONS={"LISTEN": False}) == set()


def test_a_worker_with_debug_is_warned() -> None:
    backend = compat.task_backends["default"]
    assert checks.faults_of_worker(backend) == []

    with override_settings(DEBUG=True):
        assert [message.id for message in checks.faults_of_worker(backend)] == ["byrote.W003"]


def test_a_schema_that_is_not_ours_is_found_only_when_databases_are_checked() -> None:
    with connection.cursor() as cursor:
        cursor.execute("update byrote_schema set version = version + 1000 where version = 1")
    try:
        messages = run_checks(tags=[Tags.database], databases=["default", "other"])
        assert [m.id for m in messages if m.id.startswith("byrote")] == ["byrote.E010"]
        assert found() == set()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("update byrote_schema set version = version - 1000 where version > 1000")


def test_a_schema_that_is_behind_is_a_warning_so_that_migrate_runs() -> None:
    with connection.cursor() as cursor:
        cursor.execute("alter table byrote_schema rename to elsewhere")
    try:
        messages = run_checks(tags=[Tags.database], databases=["default", "other"])
        assert [m.id for m in messages if m.id.startswith("byrote")] == ["byrote.W010"]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("alter table elsewhere rename to byrote_schema")


def test_broken_options_do_not_break_imports_but_refuse_to_enqueue() -> None:
    """Tasks are defined before checks can run: the check must get its chance to speak."""
    from tests.django.shop import tasks  # noqa: PLC0415 -- with the settings of this test.

    broken = {**TASKS["default"], "OPTIONS": {"NONSENSE": 1}}
    with override_settings(TASKS={**TASKS, "default": broken}):
        task = tasks.add.using(priority=3)
        with pytest.raises(compat.InvalidTaskBackend, match="NONSENSE"):
            task.enqueue(1, 2)
