# SPDX-License-Identifier: MIT
"""The examples of docs/how-to/sqlalchemy.md do what the page states."""

from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from byrote import App
from tests.cli.console import NOBODY
from tests.docs.test_readme import blocks
from tests.support import Db, count

PAGE = "docs/how-to/sqlalchemy.md"


def test_an_order_and_its_receipt_are_committed_together(
    url: str, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The app needs no database of its own: this one would not answer."""
    monkeypatch.setenv("BYROTE_DATABASE_URL", NOBODY)
    names: dict[str, Any] = {"__name__": "shop"}
    exec(blocks(PAGE, "python")[0], names)  # noqa: S102 -- the page's own code.
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with names["app"], Session(engine) as session:
        names["place_order"](session, 1)
        session.rollback()
        names["place_order"](session, 3)
        session.commit()
    engine.dispose()

    assert count(db, "byrote_runs") == 2


def test_an_app_uses_the_pool_that_it_was_given(url: str, db: Db) -> None:
    names: dict[str, Any] = {"App": App}
    exec(blocks(PAGE, "python")[1], names)  # noqa: S102 -- the page's own code.
    with ConnectionPool(url, min_size=1) as pool, names["app_on"](pool) as app:
        app.task(name="t")(lambda: None).enqueue()
        used = pool.get_stats()["requests_num"]

    assert used == 1
    assert count(db, "byrote_runs") == 1
