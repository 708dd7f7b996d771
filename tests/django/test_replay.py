# SPDX-License-Identifier: MIT
"""`manage.py byrote replay … --verify`: the tasks of a project, verified, and nobody is told."""

from byrote.django.models import Run
from tests.django.driving import drain, manage
from tests.django.shop import tasks
from tests.django.shop.models import Note

type Shop = dict[str, str]


def test_a_task_of_the_project_is_verified_and_no_receiver_hears_of_it(shop: Shop) -> None:
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
