# SPDX-License-Identifier: MIT
"""Notifications that a worker's connections receive besides the answers."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from byrote.assembly.clock import monotonic
from byrote.assembly.identity import jitter, new_token
from byrote.core.ports.store import ClaimRequest, PartContext
from byrote.store import queries
from byrote.store.connect import DatabaseAddress
from byrote.store.runners.sync import fetch
from byrote.store.worker import LeaseStore, PostgresStore
from byrote.system.wake import Wake
from tests.support import claim as lease
from tests.support import enqueue, until

type Db = psycopg.Connection[Any]

PATIENCE_S = 30
HEARD_S = 20
"""Far more than hearing takes, and less than waiting in vain."""


@pytest.fixture
def cancels() -> list[str]:
    return []


@pytest.fixture
def leases(address: DatabaseAddress, cancels: list[str]) -> Iterator[LeaseStore]:
    def line() -> PartContext:
        return PartContext("claim", threading.Event().wait, lambda *_: None, jitter)

    made = PostgresStore(address).leases(
        line(),
        on_cancel=lambda: cancels.append("asked"),
        on_return=lambda: cancels.append("returned"),
    )
    yield made
    made.close()


def claim(leases: LeaseStore) -> None:
    lease_for, now = timedelta(seconds=30), monotonic()
    wanted = ClaimRequest({"default": 1}, ["t@1"], "w", new_token(), lease_for, now + 27, now, {})
    assert leases.claim(wanted) == []


def rested_s(leases: LeaseStore, seconds: float = PATIENCE_S) -> float:
    wake, began = Wake(), monotonic()
    leases.rest(wake.fd, seconds)
    wake.close()
    return monotonic() - began


def test_work_that_is_notified_while_resting_ends_the_rest(leases: LeaseStore, db: Db) -> None:
    claim(leases)
    db.execute("select pg_notify('byrote_ready', 'default')")

    assert rested_s(leases) < HEARD_S


def test_work_that_is_notified_during_a_claim_is_looked_for_again(
    leases: LeaseStore, db: Db
) -> None:
    """The claim may have begun before that run existed, and no other notification follows."""
    claim(leases)
    db.execute("select pg_notify('byrote_ready', 'default')")
    claim(leases)

    assert rested_s(leases) < HEARD_S


def test_a_notification_before_a_claim_does_not_shorten_the_rest_after_it(
    leases: LeaseStore, db: Db
) -> None:
    claim(leases)
    db.execute("select pg_notify('byrote_ready', 'default')")
    heard = rested_s(leases)
    claim(leases)

    assert heard < HEARD_S
    assert rested_s(leases, 0.05) >= 0.05


def test_a_cancellation_during_a_claim_is_received(
    leases: LeaseStore, db: Db, cancels: list[str]
) -> None:
    claim(leases)
    db.execute("select pg_notify('byrote_cancel', 'w'), pg_notify('byrote_cancel', 'another')")
    claim(leases)

    assert cancels == ["asked"]


def test_a_sweep_notifies_busy_claimers_of_returned_runs(
    leases: LeaseStore, db: Db, cancels: list[str]
) -> None:
    """They keep their rank, which may be behind the mark that a busy claimer starts from."""
    enqueue(db)
    lease(db, lease_for=timedelta(0))
    claim(leases)
    fetch(db, queries.sweep())
    until(lambda: rested_s(leases, 0.05) >= 0 and cancels)

    assert cancels == ["returned"]
