# SPDX-License-Identifier: MIT
"""Verbs of the admin on runs whose rows another transaction has locked."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from byrote.core.errors import RowLocked
from byrote.django import cancel
from byrote.store.connect import DatabaseAddress
from tests.django.admin import stage
from tests.django.admin.test_actions import AFTER, MAKE, RUNS, choose, press
from tests.store.test_locks import locked
from tests.support import Db

TABLES = {
    "retry": "byrote_dead",
    "hurry": "byrote_task_runs",
    "cancel": "byrote_task_runs",
    "delete_selected": "byrote_dead",
}


@pytest.fixture
def address(shop: dict[str, str]) -> DatabaseAddress:
    return DatabaseAddress(shop["SHOP_DATABASE"])


def said(page: Any) -> list[str]:
    """The messages at the top of a page."""
    return re.findall(r'<li class="(?:success|warning)">([^<]+)</li>', page.content.decode())


@pytest.mark.parametrize("name", TABLES)
def test_a_locked_run_is_named_and_the_others_are_moved(
    root: Client, db: Db, address: DatabaseAddress, name: str
) -> None:
    stuck, free = MAKE[name](db), MAKE[name](db)
    before = stage.status_of(db, stuck)
    with locked(address, TABLES[name], "result_id", stuck):
        page = choose(root, name, stuck, free)
        assert stage.status_of(db, stuck) == before

    assert stage.status_of(db, free) == AFTER[name]
    done, left = said(page)
    assert done.startswith("1 run ")
    assert left == "1 run is locked by another transaction; try again."
    assert [entry.object_id for entry in LogEntry.objects.all()] == [free]
    press(root, name, stuck)
    assert stage.status_of(db, stuck) == AFTER[name]


def test_a_locked_dead_run_does_not_hold_up_a_requeue(
    root: Client, db: Db, address: DatabaseAddress
) -> None:
    stuck, free = stage.dead(db), stage.dead(db)
    with locked(address, "byrote_dead", "result_id", stuck):
        page = root.post(f"{RUNS}requeue/?status=FAILED", follow=True)

    assert [stage.status_of(db, run_id) for run_id in (stuck, free)] == ["FAILED", "READY"]
    assert said(page) == [
        "1 dead runs were requeued.",
        "1 run is locked by another transaction; try again.",
    ]


@pytest.mark.usefixtures("shop")
def test_cancelling_a_locked_task_raises(db: Db, address: DatabaseAddress) -> None:
    run_id = stage.ready()
    with locked(address, "byrote_task_runs", "result_id", run_id):
        with pytest.raises(RowLocked, match=run_id):
            cancel(run_id)
        assert stage.status_of(db, run_id) == "READY"

    assert cancel(run_id) is True
