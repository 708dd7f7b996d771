# SPDX-License-Identifier: MIT
"""The shop's database: one engine for each process, in the web server and in the hands."""

import os

from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

# Byrote reads the same variable; it ignores the driver, so both forms of the URL work.
url = make_url(os.environ.get("DATABASE_URL", "postgresql:///shop"))
engine = create_async_engine(url.set(drivername="postgresql+asyncpg"))
sessions = async_sessionmaker(engine, expire_on_commit=False)
