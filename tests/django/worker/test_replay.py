# SPDX-License-Identifier: MIT
"""`manage.py byrote replay … --verify`: replays a project's tasks without any signals."""

from contextvars import copy_context
from typing import Any

import pytest

from byrote.core.replay.withholding import Withholding, open_withholding
from byrote.django import cancel, compat, signal
from byrote.django.models import Run
from tests.django.driving import drain, manage
from tests.django.shop import tasks
from tests.django.shop.models import Note

type Shop = dict[str, str]


def test_a_task_of_the_project_is_verified_without_signals(shop: Shop) -> None:
    results = [tasks.add.enqueue(1, 2), tasks.wait.enqueue("x"), tasks.fail_first.enqueue()]
    drain(shop)
    said = [
        manage(shop, "byrote", "replay", str(result.id), "--verify", SHOP_RECEIVERS="yes")
        for result in results
    ]

    assert [done.stdout.split()[0] for done in said] == ["same"] * 3, said
    assert [done.returncode for done in said] == [0, 0, 0]
    assert Run.objects.count() == 6
    assert Note.objects.count() == 0


def test_a_task_that_enqueues_sends_nothing_when_it_is_replayed(shop: Shop) -> None:
    """By every API, in any transaction; receivers are not called."""
    result = tasks.enqueues.enqueue()
    drain(shop)
    before = Run.objects.count()
    said = manage(shop, "byrote", "replay", str(result.id), "--verify", SHOP_RECEIVERS="yes")

    assert said.stdout.split()[0] == "same", said
    assert "not sent    enqueue tests.django.shop.tasks.add, 5 times" in said.stdout
    assert Run.objects.filter(shadow=None).count() == before


def test_the_result_of_a_task_that_was_not_enqueued_does_not_exist() -> None:
    def replayed() -> Any:
        open_withholding(Withholding("r"))
        sent = tasks.add.enqueue(1, 2)
        assert cancel(sent)
        assert signal(sent, "go")
        return sent

    result = copy_context().run(replayed)

    assert (result.status, result.args) == (compat.TaskResultStatus.READY, [1, 2])
    with pytest.raises(compat.TaskResultDoesNotExist):
        result.refresh()
