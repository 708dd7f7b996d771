# SPDX-License-Identifier: MIT
"""What every store promises about rows that another transaction has locked: it waits for none."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg import sql

from byrote.core.errors import Fatal
from byrote.core.outcome import Failed, Fault
from byrote.core.ports.replies import LOCKED
from byrote.core.run import Leased
from byrote.core.state import Status
from byrote.store.connect import DatabaseAddress
from tests.contracts.store.parts import LEASE, Db, Parts, expire, judged, returned
from tests.contracts.store.test_store_ledgers import step
from tests.support import enqueue, run_of

FATAL = Failed(Fault(kind="fatal", type=Fatal.__name__, message="no"))


@contextmanager
def locked(address: DatabaseAddress, *leases: Leased, how: str = "update") -> Iterator[None]:
    """Lock the rows of these runs as an application's select_for_update() does."""
    text = sql.SQL("select 1 from byrote_task_runs where result_id = any(%s::uuid[]) for ")
    with address.open("somebody") as other, other.transaction():
        other.execute(text + sql.SQL(how), ([lease.id for lease in leases],))
        yield


@pytest.mark.parametrize("how", ["update", "no key update", "share"])
def test_a_locked_row_holds_up_no_other_renewal(
    parts: Parts, db: Db, address: DatabaseAddress, how: str
) -> None:
    enqueue(db, 3)
    one, other, stuck = parts.claim(3)
    before = run_of(db, one.id).leased_until
    for _ in range(2):
        with locked(address, stuck, how=how):
            answer = parts.registry.renew([one, stuck, other], lease_for=LEASE)
        assert answer == {one.id: False, other.id: False, stuck.id: LOCKED}

    assert run_of(db, one.id).leased_until > before  # type: ignore[operator]
    assert parts.registry.renew([one, stuck], lease_for=LEASE) == {one.id: False, stuck.id: False}


def test_a_locked_row_holds_up_no_other_finish(
    parts: Parts, db: Db, address: DatabaseAddress
) -> None:
    """Bare successes and all other verdicts; what was locked is accepted later."""
    enqueue(db, 6)
    leases = parts.claim(6)
    ended = [judged(lease, returned(1)) for lease in leases[:3]]
    ended += [judged(lease, FATAL) for lease in leases[3:]]
    with locked(address, leases[1], leases[4]):
        answer = parts.verdicts.finish(ended)
        assert parts.verdicts.finish([ended[1]]) == {leases[1].id: LOCKED}
    letters = dict(zip([lease.id for lease in leases], "SSSFFF", strict=True))

    assert answer == letters | {leases[1].id: LOCKED, leases[4].id: LOCKED}
    assert run_of(db, leases[1].id).status is Status.RUNNING
    assert parts.verdicts.finish([ended[1], ended[4]]) == {leases[1].id: "S", leases[4].id: "F"}
    assert run_of(db, leases[4].id).status is Status.FAILED


def test_a_lock_that_only_a_deletion_waits_for_holds_up_nothing_else(
    parts: Parts, db: Db, address: DatabaseAddress
) -> None:
    """A foreign key to a run: it can be updated, but not be moved to the dead letters."""
    enqueue(db, 4)
    leases = parts.claim(4)
    with locked(address, leases[1], how="key share"):
        answer = parts.verdicts.finish([judged(lease, FATAL) for lease in leases])
        renewed = parts.registry.renew([leases[1]], lease_for=LEASE)

    assert [answer[lease.id] for lease in leases] == ["F", LOCKED, "F", "F"]
    assert renewed == {leases[1].id: False}


def test_a_lease_that_is_lost_is_not_called_locked(
    parts: Parts, db: Db, address: DatabaseAddress
) -> None:
    """Not when another row is; and not when its own was, once it is free."""
    enqueue(db, 3)
    lost, stuck, free = parts.claim(3)
    with locked(address, stuck):
        expire(db, lost.id)
        ended = [judged(lease, returned(1)) for lease in (lost, stuck, free)]
        assert parts.verdicts.finish(ended) == {stuck.id: LOCKED, free.id: "S"}
        assert parts.registry.renew([lost, stuck], lease_for=LEASE) == {stuck.id: LOCKED}
    expire(db, stuck.id)

    assert parts.verdicts.finish([judged(stuck, returned(1))]) == {}
    assert parts.registry.renew([stuck], lease_for=LEASE) == {}


def test_a_locked_row_holds_up_no_other_step_or_report(
    parts: Parts, db: Db, address: DatabaseAddress
) -> None:
    enqueue(db, 3)
    stuck, lost, free = parts.claim(3)
    expire(db, lost.id)
    reports = [
        {"id": lease.id, "token": lease.token, "percent": 5.0, "done": None, "total": None}
        | {"message": "", "data": None}
        for lease in (stuck, lost, free)
    ]
    with locked(address, stuck):
        noted = parts.ledgers.note([step(lease, 1, "x") for lease in (stuck, lost, free)])
        held = parts.ledgers.holding(reports)
        told = parts.ledgers.progress(reports)
        still = parts.ledgers.holding(reports)

    assert [row.id for row in noted] == [free.id]
    assert told == [free.id]
    assert (stuck.id in held, lost.id in held) == (True, False)
    assert (stuck.id in still, lost.id in still) == (True, False)
    assert [row.id for row in parts.ledgers.note([step(stuck, 1, "x")])] == [stuck.id]
