# SPDX-License-Identifier: MIT
"""Unique keys of statements that have to wait."""

from concurrent.futures import ThreadPoolExecutor

from byrote.store.connect import DatabaseAddress
from tests.store.enqueue.test_unique import end, one, send, spec
from tests.support import Db, until, waits_for_a_lock


def test_a_holder_that_ends_while_the_statement_waits_is_not_given(
    db: Db, address: DatabaseAddress
) -> None:
    """The statement waits for another key; meanwhile the holder ends, and a run takes its key."""
    first, _ = one(db, "k")
    with (
        address.open("other") as other,
        address.open("late") as late,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute("begin")
        one(other, "a")
        sent = pool.submit(send, late, spec("a"), spec("k"))
        until(lambda: waits_for_a_lock(db, late))
        end(db, "S")
        second, made = one(db, "k")
        other.execute("rollback")
        (_, made_a), given = sent.result()

    assert (made, made_a) == (True, True)
    assert given == (second, False)
    assert second != first
