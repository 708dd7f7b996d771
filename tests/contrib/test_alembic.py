# SPDX-License-Identifier: MIT
"""`alembic revision --autogenerate` on a database that Byrote uses proposes nothing about it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.config import Config

from byrote.assembly.identity import jitter
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate

# The type of a column of ours; SQLAlchemy reads every table before it asks what to include.
pytestmark = pytest.mark.filterwarnings("ignore:Did not recognize type 'xid8'")

ENV = """
from alembic import context
from sqlalchemy import Column, Integer, MetaData, Table, create_engine
from byrote.contrib.alembic import include_object  # noqa: F401

metadata = MetaData()
Table("orders", metadata, Column("id", Integer, primary_key=True))
Table("byrote_of_mine", metadata, Column("id", Integer, primary_key=True))
engine = create_engine("postgresql+psycopg://", connect_args={arguments!r})
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, {options})
    with context.begin_transaction():
        context.run_migrations()
engine.dispose()
"""
SCRIPT = """
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
from alembic import op
import sqlalchemy as sa

def upgrade():
    ${upgrades if upgrades else "pass"}

def downgrade():
    ${downgrades if downgrades else "pass"}
"""


@pytest.fixture
def fresh(server_url: str, worker_id: str) -> Iterator[str]:
    """An empty database."""
    name = f"alembic_{worker_id}_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        yield psycopg.conninfo.make_conninfo(server_url, dbname=name)
        admin.execute(f"drop database {name} with (force)".encode())


def _proposed(folder: Path, url: str, options: str) -> str:
    """What autogenerate writes: a revision made by Alembic itself, on this database."""
    scripts = folder / "alembic"
    (scripts / "versions").mkdir(parents=True)
    arguments: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    (scripts / "env.py").write_text(ENV.format(arguments=arguments, options=options))
    (scripts / "script.py.mako").write_text(SCRIPT)
    config = Config()
    config.set_main_option("script_location", str(scripts))
    command.revision(config, message="first", autogenerate=True)
    [written] = (scripts / "versions").glob("*.py")
    return written.read_text().partition("def upgrade")[2].partition("def downgrade")[0]


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ("queue", ""),
        ("queue", "include_schemas=True, include_object=include_object"),
        (None, "include_object=include_object"),
        (None, "include_schemas=True, include_object=include_object"),
    ],
)
def test_only_the_tables_of_the_models_are_proposed(
    fresh: str, tmp_path: Path, schema: str | None, options: str
) -> None:
    migrate(DatabaseAddress(fresh, schema=schema), jitter=jitter)

    proposed = _proposed(tmp_path, fresh, options)

    assert "create_table('orders'" in proposed
    assert "create_table('byrote_of_mine'" in proposed
    assert proposed.count("op.") == 2
    assert "drop" not in proposed


def test_without_either_alembic_would_drop_the_tables(fresh: str, tmp_path: Path) -> None:
    """The reason for this module, and the proof that the tests above can fail."""
    migrate(DatabaseAddress(fresh), jitter=jitter)

    assert "drop_table('byrote_task_runs')" in _proposed(tmp_path, fresh, "")
