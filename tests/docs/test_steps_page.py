# SPDX-License-Identifier: MIT
"""The examples of docs/how-to/steps.md are run by a worker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from byrote import App
from tests.docs.test_readme import blocks, byrote
from tests.support import until

PAGE = "docs/how-to/steps.md"


@pytest.fixture
def shop(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The page's tasks in one module, and a worker that executes them."""
    tasks = [block for block in blocks(PAGE, "python") if "app.signal" not in block]
    (tmp_path / "shop.py").write_text("\n".join(tasks), encoding="utf-8")
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    names: dict[str, Any] = {"__name__": "shop"}
    exec("\n".join(tasks), names)  # noqa: S102 -- our own page.
    worker = byrote("worker", "shop:app", folder=tmp_path, url=url)
    yield names
    worker.terminate()
    worker.communicate(timeout=60)
    names["app"].close()


def test_the_examples_behave_as_described(
    shop: dict[str, Any], db: psycopg.Connection[Any], url: str
) -> None:
    db.execute("create table if not exists bookings (cents integer); truncate bookings")
    checkout = shop["checkout"].enqueue(7)
    reminder = shop["remind"].enqueue(0.3)
    booking = shop["book"].enqueue(url, 5)
    rate = shop["convert"].enqueue(100, "USD")

    assert checkout.result(timeout=60) == "receipt 1007 sent"
    assert reminder.result(timeout=60) == "how do you like it?"
    assert booking.result(timeout=60) == 1
    assert rate.result(timeout=60) == 116
    assert checkout.refresh().attempts == 2
    db.execute("drop table bookings")


def test_the_example_of_an_undo_takes_the_same_way_in_every_attempt(shop: dict[str, Any]) -> None:
    run = shop["travel"].enqueue(1)

    assert run.result(timeout=60) == "no room left: flight 701 cancelled"
    assert run.refresh().attempts == 2


def test_the_example_of_a_signal_is_received(
    shop: dict[str, Any], db: psycopg.Connection[Any]
) -> None:
    app: App = shop["app"]
    run = shop["order"].enqueue(42)
    until(lambda: run.refresh().wait_reason == "event", within=60)
    [call] = [block for block in blocks(PAGE, "python") if "app.signal" in block]
    exec(call, {"app": app, "run": run})  # noqa: S102 -- our own page.

    assert run.result(timeout=60) == "order 42 paid: 1999 cents"
