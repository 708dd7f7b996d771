# SPDX-License-Identifier: MIT
from django.db import router
from django.test import override_settings

from byrote.django.models import Run, TaskRun
from tests.django.settings import TASKS
from tests.django.shop import tasks
from tests.django.shop.models import Note

ROUTED = {
    "DATABASE_ROUTERS": ["byrote.django.Router"],
    "TASKS": {"default": {**TASKS["default"], "OPTIONS": {"DATABASE": "other"}}},
}


@override_settings(**ROUTED)
def test_our_tables_are_in_the_database_of_the_backend_only() -> None:
    assert router.db_for_write(TaskRun) == router.db_for_read(Run) == "other"
    assert router.allow_migrate_model("other", TaskRun)
    assert not router.allow_migrate_model("default", TaskRun)
    assert router.db_for_write(Note) == "default"
    assert router.allow_migrate_model("default", Note)

    result = tasks.add.enqueue(1, 2)
    assert str(Run.objects.get().result_id) == result.id
    assert not Run.objects.using("default").exists()


def test_without_a_router_runs_go_where_routers_send_our_models() -> None:
    with override_settings(DATABASE_ROUTERS=["tests.django.backend.test_router.Elsewhere"]):
        tasks.add.enqueue(1, 2)

    assert Run.objects.using("other").count() == 1


class Elsewhere:
    """A router of a project's own."""

    def db_for_write(self, model: type, **_hints: object) -> str | None:
        return "other" if model.__module__.startswith("byrote.django.models") else None
