# SPDX-License-Identifier: MIT
"""Libraries that use the backport `django_tasks` on Django 6: its exceptions and its signals."""

import sys
from types import ModuleType
from typing import Any

import django
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.dispatch import Signal

from byrote.django import compat, enqueue_many
from byrote.django.backport import both, twin_of
from byrote.django.test import run_tasks
from tests.django.shop import tasks
from tests.programs import ELSEWHERE

pytestmark = pytest.mark.skipif(
    django.VERSION < (6, 0), reason=ELSEWHERE + "the backport is the only one"
)


class TaskException(Exception):
    pass


@pytest.fixture
def backport(shop: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The backport's names as it defines them, as if a library had imported them."""
    exceptions, signals = ModuleType("django_tasks.exceptions"), ModuleType("django_tasks.signals")
    for name in ("InvalidTaskError", "TaskResultDoesNotExist", "TaskResultMismatch"):
        setattr(exceptions, name, type(name, (TaskException,), {}))
    theirs = type("InvalidTaskBackendError", (ImproperlyConfigured,), {})
    exceptions.InvalidTaskBackendError = theirs  # type: ignore[attr-defined]
    for name in ("task_enqueued", "task_started", "task_finished"):
        setattr(signals, name, Signal())
    monkeypatch.setitem(sys.modules, "django_tasks.exceptions", exceptions)
    monkeypatch.setitem(sys.modules, "django_tasks.signals", signals)
    return exceptions, signals


def test_errors_are_of_both_kinds(backport: Any) -> None:
    exceptions, _ = backport
    missing = "00000000-0000-7000-8000-000000000000"
    for kind in (exceptions.TaskResultDoesNotExist, compat.TaskResultDoesNotExist):
        with pytest.raises(kind):
            tasks.add.get_result(missing)
    for kind in (exceptions.InvalidTaskError, compat.InvalidTask):
        with pytest.raises(kind, match="nowhere"):
            tasks.add.using(queue_name="nowhere")
        with pytest.raises(kind):
            enqueue_many([(tasks.add.using(labels={"a": 1}), (1, 2), {})])
    made = both(compat.InvalidTaskBackend)
    assert issubclass(made, exceptions.InvalidTaskBackendError)
    assert issubclass(made, compat.InvalidTaskBackend)


def test_signals_are_sent_to_both(backport: Any) -> None:
    _, signals = backport
    heard: list[tuple[str, str]] = []

    def on(name: str) -> Any:
        def keep(task_result: Any, **_more: Any) -> None:
            heard.append((name, str(task_result.status)))

        return keep

    for name in ("task_enqueued", "task_started", "task_finished"):
        assert twin_of(getattr(compat, name)) is None  # Without receivers, nothing is sent.
        getattr(signals, name).connect(on(name), weak=False)
    tasks.add.enqueue(1, 2)
    run_tasks()

    assert heard == [
        ("task_enqueued", "READY"),
        ("task_started", "RUNNING"),
        ("task_finished", "SUCCESSFUL"),
    ]
