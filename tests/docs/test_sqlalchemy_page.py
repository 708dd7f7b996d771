# SPDX-License-Identifier: MIT
"""The examples of docs/how-to/sqlalchemy.md do what the page states."""

from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine
from sqlalchemy.orm import Session

from tests.docs.test_readme import blocks
from tests.support import Db, count

PAGE = "docs/how-to/sqlalchemy.md"


def test_an_order_and_its_receipt_are_committed_together(url: str, db: Db) -> None:
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


@pytest.mark.filterwarnings("ignore:Did not recognize type")
def test_alembic_proposes_nothing_with_include_name(url: str) -> None:
    names: dict[str, Any] = {}
    exec(blocks(PAGE, "python")[1], names)  # noqa: S102 -- the page's own code.
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with engine.connect() as connection:
        plain = compare_metadata(MigrationContext.configure(connection), MetaData())
        opts = {"include_name": names["include_name"]}
        chosen = compare_metadata(MigrationContext.configure(connection, opts=opts), MetaData())
    engine.dispose()

    assert plain
    assert chosen == []
