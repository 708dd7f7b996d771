# SPDX-License-Identifier: MIT
"""RETENTION in OPTIONS: a worker that starts stores the retention of its queues."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import override_settings

from byrote.django.app import backend_of
from byrote.django.models import Queue
from byrote.django.worker import command

DAY = timedelta(days=1)


def start(**options: Any) -> None:
    """What a worker does about RETENTION before it works."""
    backend = {"BACKEND": "byrote.django.Backend", "QUEUES": ["default", "mail"]}
    with override_settings(TASKS={"default": {**backend, "OPTIONS": options}}):
        ours = backend_of("default")
        command.store_retention(ours, command.settings_of(ours, {"queues": "mail"}))


def kept() -> list[tuple[Any, ...]]:
    return list(Queue.objects.values_list("queue_name", "keep_done", "keep_dead"))


def test_a_worker_sets_the_retention_of_its_queues(shop: dict[str, str]) -> None:
    start(RETENTION={"successful": "7d"})
    assert kept() == [("mail", 7 * DAY, 90 * DAY)]

    start(RETENTION={"failed": timedelta(days=5)})
    assert kept() == [("mail", 7 * DAY, 5 * DAY)]

    start()
    assert kept() == [("mail", 7 * DAY, 5 * DAY)]


def test_a_database_that_does_not_answer_is_reported_and_does_not_end_the_worker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_args: Any) -> None:
        raise DatabaseError("no")

    monkeypatch.setattr(command, "fetch", refuse)
    start(RETENTION={"successful": "7d"})

    assert "RETENTION could not be stored: no" in capsys.readouterr().err
    assert connection.connection is None
