# SPDX-License-Identifier: MIT
"""`run_tasks` calls the hooks of an app as a hand does."""

import asyncio

from byrote import App, EndedRun, FailedAttempt, Retry
from byrote.testing import run_tasks
from tests.support import Db


def test_run_tasks_calls_the_hooks(app: App, db: Db) -> None:
    seen = list[str]()

    @app.task(name="fails", retry=Retry(attempts=2))
    def fails() -> None:
        raise ValueError("no")

    @app.on_hand_start
    async def start() -> None:
        await asyncio.sleep(0)
        seen.append("start")

    @app.on_failure
    def failed(attempt: FailedAttempt) -> None:
        seen.append(f"{attempt.ctx.attempt} {attempt.error!r} {attempt.will_retry}")

    @app.on_end
    async def ended(run: EndedRun) -> None:
        await asyncio.sleep(0)
        seen.append(f"{run.task} {run.status} {run.attempts}")

    @app.on_hand_stop
    def stop() -> None:
        seen.append("stop")

    fails.enqueue()
    run_tasks(app, connection=db, raise_errors=False)

    assert seen == [
        "start",
        "1 ValueError('no') True",
        "2 ValueError('no') False",
        "fails FAILED 2",
        "stop",
    ]
