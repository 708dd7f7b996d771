# SPDX-License-Identifier: MIT
"""The pytest plugin: the fixture `byrote_tasks`. Imports nothing of Django before it is used."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest


class TasksFixture:
    """The tasks that a test enqueued, and methods to run and check them."""

    def __init__(self, sent: list[Any]) -> None:
        self.sent = sent
        """Results of all tasks enqueued since the test began."""

    def run(self, *args: Any, **options: Any) -> list[Any]:
        """As `byrote.django.test.run_tasks`."""
        from byrote.django.test import run_tasks  # noqa: PLC0415 -- settings are there by now.

        return run_tasks(*args, **options)

    def assert_enqueued(self, task: Any, *args: Any, **kwargs: Any) -> Any:
        """As `byrote.django.test.assert_enqueued`."""
        from byrote.django.test import assert_enqueued  # noqa: PLC0415 -- the same.

        return assert_enqueued(task, *args, **kwargs)

    def assert_not_enqueued(self, task: Any, *args: Any, **kwargs: Any) -> None:
        """As `byrote.django.test.assert_not_enqueued`."""
        from byrote.django.test import assert_not_enqueued  # noqa: PLC0415 -- the same.

        assert_not_enqueued(task, *args, **kwargs)


@pytest.fixture
def byrote_tasks(request: pytest.FixtureRequest) -> Iterator[TasksFixture]:
    """Tasks of a Django project under test; with pytest-django, in its test transaction."""
    if find_spec("django") is None:
        pytest.fail(
            "byrote_tasks is for Django projects, and Django is not installed; the fixture for a "
            "plain app is byrote_app.",
            pytrace=False,
        )
    if request.config.pluginmanager.hasplugin("django"):
        request.getfixturevalue("db")
    from byrote.django.test import captured_tasks  # noqa: PLC0415 -- settings are there by now.

    with captured_tasks() as sent:
        yield TasksFixture(sent)
