# SPDX-License-Identifier: MIT
"""Alembic's entry: compares the shop's models with the database."""

import asyncio

from alembic import context
from shop.database import engine
from shop.models import Base
from sqlalchemy import Connection


def include_name(name: str | None, type_: str, _parents: object) -> bool:
    """Leave Byrote's tables to `byrote migrate`."""
    return not (type_ == "table" and name is not None and name.startswith("byrote_"))


def migrate(connection: Connection) -> None:
    context.configure(
        connection=connection, target_metadata=Base.metadata, include_name=include_name
    )
    with context.begin_transaction():
        context.run_migrations()


async def main() -> None:
    async with engine.connect() as connection:
        await connection.run_sync(migrate)
    await engine.dispose()


asyncio.run(main())
