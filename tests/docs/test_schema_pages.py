# SPDX-License-Identifier: MIT
"""The examples of docs/how-to/schema.md and docs/how-to/alembic.md do what the pages state."""

from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine

from byrote.django.backend.policy import read_options
from tests.docs.test_readme import blocks
from tests.homes import home_in
from tests.support import count

SCHEMA = "docs/how-to/schema.md"
ALEMBIC = "docs/how-to/alembic.md"


def test_an_app_enqueues_in_its_schema(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    home = home_in(url, "queue")
    names: dict[str, Any] = {"__name__": "shop"}
    exec(blocks(SCHEMA, "python")[0], names)  # noqa: S102 -- the page's own code.
    with names["app"], psycopg.connect(url) as connection:
        names["send_receipt"].enqueue(1)
        names["send_receipt"].using(connection=connection).enqueue(2)
        connection.commit()

    with home.open("test") as db:
        assert count(db, "byrote_runs") == 2
        db.execute("drop schema queue cascade")


def test_the_settings_for_django_are_accepted() -> None:
    names: dict[str, Any] = {"DATABASES": {"default": {}}}
    exec(blocks(SCHEMA, "python")[1], names)  # noqa: S102 -- the page's own code.

    assert read_options(names["TASKS"]["default"]["OPTIONS"]).schema == "queue"
    assert names["DATABASES"]["default"]["OPTIONS"]["options"].endswith("queue")


class _Recorded:
    """Records how Alembic's context is configured."""

    def configure(self, **options: Any) -> None:
        self.options = options


@pytest.mark.filterwarnings("ignore:Did not recognize type")
@pytest.mark.parametrize("block", [0, 1])
def test_alembic_proposes_nothing(url: str, block: int) -> None:
    names: dict[str, Any] = {}
    exec(blocks(ALEMBIC, "python")[block], names)  # noqa: S102 -- the page's own code.
    context = _Recorded()
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with engine.connect() as connection:
        if block == 0:
            names["configure"](context, connection, MetaData())
            assert context.options["include_object"] is names["include_object"]
        opts = {"include_object": names["include_object"]}
        plain = compare_metadata(MigrationContext.configure(connection), MetaData())
        chosen = compare_metadata(MigrationContext.configure(connection, opts=opts), MetaData())
    engine.dispose()

    assert plain
    assert chosen == []
