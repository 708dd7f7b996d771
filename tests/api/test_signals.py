# SPDX-License-Identifier: MIT
import asyncio
from typing import Any

import psycopg
import pytest

from byrote import App, ByroteError, Context
from byrote.core.errors import BadOption, BadPayload, RunNotFound
from tests.store.steps.test_step import leased
from tests.support import Db, count, enqueue, finish, success


def test_a_signal_to_an_unknown_run_raises(app: App) -> None:
    with pytest.raises(RunNotFound):
        app.signal("01932c4e-8d5b-7a90-b1c2-3d4e5f607182", "paid")


@pytest.mark.parametrize("event", ["", "x" * 201, "a\nb", "\ud800"])
def test_an_event_needs_a_proper_name(app: App, db: Db, event: str) -> None:
    [run_id] = enqueue(db)

    with pytest.raises(BadOption):
        app.signal(run_id, event)


def test_a_payload_that_cannot_be_stored_is_refused(app: App, db: Db) -> None:
    [run_id] = enqueue(db)

    with pytest.raises(BadPayload):
        app.signal(run_id, "paid", {1, 2})
    assert count(db, "byrote_signals") == 0


def test_signals_may_be_sent_from_a_loop(app: App, db: Db) -> None:
    lease = leased(db)

    async def send() -> tuple[bool, bool]:
        heard = await app.asignal(lease.id, "paid", [1])
        finish(db, [success(lease)])
        late = await app.asignal(lease.id, "paid", [2])
        await app.astore.close()
        return heard, late

    assert asyncio.run(send()) == (True, False)
    assert count(db, "byrote_signals") == 1


@pytest.mark.parametrize("use", ["step", "once"])
def test_a_context_outside_a_worker_refuses_steps(db: psycopg.Connection[Any], use: str) -> None:
    ctx = Context(run_id="r", task="t", queue="q", attempt=1, labels={})

    with pytest.raises(ByroteError, match="need a worker that can be asked"):
        ctx.step("a", int) if use == "step" else ctx.once("a", db)
