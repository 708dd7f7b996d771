# SPDX-License-Identifier: MIT
"""Enqueueing prepares its statement on Django's connection, and never behind a pooler."""

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from byrote.django.models import Run
from tests.django.shop import tasks


def prepared() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("select statement from pg_prepared_statements")
        return [text for (text,) in cursor.fetchall()]


def test_a_busy_connection_prepares_and_django_sees_every_statement() -> None:
    for number in range(10):
        with CaptureQueriesContext(connection) as queries:
            tasks.echo.enqueue("\x00é", number=number)
        assert len(queries) == 1

    assert len(prepared()) == 1
    assert "insert into byrote_task_runs" in prepared()[0]
    assert Run.objects.count() == 10
    # Django's own statements are as they were.
    assert connection.connection.prepare_threshold is None
    assert issubclass(connection.connection.cursor_factory, psycopg.ClientCursor)


def test_behind_a_pooler_nothing_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler reports another process id than the server's."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 1)
    for _ in range(10):
        tasks.add.enqueue(1, 2)

    assert prepared() == []
    assert Run.objects.count() == 10


def test_a_prepared_statement_survives_transactions_that_do_not() -> None:
    for _ in range(3):
        with transaction.atomic():
            for _ in range(3):
                tasks.add.enqueue(1, 2)
            transaction.set_rollback(True)
    tasks.add.enqueue(1, 2)

    assert Run.objects.count() == 1
