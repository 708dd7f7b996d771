# SPDX-License-Identifier: MIT
"""The database of an app: its settings, its connections and their end."""

import atexit
import os
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from byrote.assembly.identity import jitter
from byrote.assembly.operations.address import address_of
from byrote.assembly.settings import Settings, resolve
from byrote.core.duration import duration
from byrote.core.ports.app import WithoutReports
from byrote.core.text.schema_name import checked_schema
from byrote.embedded.databases import own_url
from byrote.embedded.server import open_server
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.aio import AsyncStore
from byrote.store.runners.pools import is_async_pool
from byrote.store.runners.sync import Store


class AppDatabase(WithoutReports):
    """Connects when it is first needed; `with` and `async with` close the connections."""

    def __init__(
        self,
        url: str | None,
        *,
        schema: str | None = None,
        pool: Any = None,
        pool_size: int | None = None,
        enqueue_patience: timedelta | str | float | None = None,
    ) -> None:
        self.url = url
        """The database set in code; absent: that of the settings, else the embedded server."""
        self.schema = None if schema is None else checked_schema(schema)
        """The schema set in code; absent: that of the settings, else the search path's first."""
        self._patience = None if enqueue_patience is None else duration(enqueue_patience)
        self._pool = pool
        self._pool_is_async = pool is not None and is_async_pool(pool)
        self._pool_size = pool_size

    @cached_property
    def settings(self) -> Settings:
        """Settings from files and the environment."""
        chosen = {
            "database_url": self.url,
            "schema": self.schema,
            "pool_size": self._pool_size,
            "enqueue_patience": self._patience,
        }
        return resolve(chosen).settings

    @cached_property
    def address(self) -> DatabaseAddress:
        """The database's address; starts the embedded server if no database is set."""
        url = self.settings.database_url or self._url_of_pool() or self._embedded()
        return address_of(self.settings, url, patience_s=self._patience_s)

    def _url_of_pool(self) -> str | None:
        """The database of the pool, if it was given as a text: it may also be a function."""
        written = getattr(self._pool, "conninfo", None)
        return written if isinstance(written, str) and written else None

    def _embedded(self) -> str:
        server = open_server(environ=os.environ)
        atexit.register(server.close)
        url = own_url(server.url, Path.cwd(), os.environ)
        migrate(address_of(self.settings, url), jitter=jitter)
        return url

    @cached_property
    def store(self) -> Store:
        """The store that executes this app's queries."""
        return Store(
            self.address,
            jitter=jitter,
            size=self.settings.pool_size,
            patience_s=self._patience_s,
            pool=None if self._pool_is_async else self._pool,
        )

    @cached_property
    def astore(self) -> AsyncStore:
        """The store that executes this app's queries on the running event loop."""
        return AsyncStore(
            self.address,
            jitter=jitter,
            size=self.settings.pool_size,
            patience_s=self._patience_s,
            pool=self._pool if self._pool_is_async else None,
        )

    @property
    def _patience_s(self) -> float:
        return self.settings.enqueue_patience.total_seconds()

    def migrate(self) -> None:
        """Bring the database's schema up to date."""
        migrate(self.address, jitter=jitter)

    def close(self) -> None:
        """Close idle connections; those of event loops need `aclose` before the loop ends."""
        if "store" in self.__dict__:
            self.store.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and idle ones of other callers."""
        if "astore" in self.__dict__:
            await self.astore.close()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()
