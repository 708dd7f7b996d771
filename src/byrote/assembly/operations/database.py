# SPDX-License-Identifier: MIT
"""The database of an app: its settings, its connections and their end."""

import atexit
import os
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Self

from byrote.assembly.identity import jitter
from byrote.assembly.settings import Settings, resolve
from byrote.core.duration import duration
from byrote.core.ports.app import WithoutReports
from byrote.embedded.choice import external, open_own
from byrote.store.connect import DatabaseAddress
from byrote.store.migrate import migrate
from byrote.store.runners.aio import AsyncStore
from byrote.store.runners.sync import Store


class AppDatabase(WithoutReports):
    """Connects when it is first needed; `with` and `async with` close the connections."""

    def __init__(
        self, url: str | None, *, enqueue_patience: timedelta | str | float | None = None
    ) -> None:
        self.url = url
        """The database set in code, or `embedded`; absent: that of the settings."""
        self._patience = None if enqueue_patience is None else duration(enqueue_patience)

    @cached_property
    def settings(self) -> Settings:
        """Settings from files and the environment."""
        chosen = {"database_url": self.url, "enqueue_patience": self._patience}
        return resolve(chosen).settings

    @cached_property
    def address(self) -> DatabaseAddress:
        """The database's address; starts the embedded server if it was asked for.

        Raises NoDatabase if no database is set and `byrote[embedded]` is not installed.
        """
        given = self.settings.database_url
        url = external(given) or self._embedded(given)
        return DatabaseAddress(url, pooled=self.settings.pooled, patience_s=self._patience_s)

    def _embedded(self, given: str | None) -> str:
        server, url = open_own(given, Path.cwd(), environ=os.environ)
        atexit.register(server.close)
        migrate(DatabaseAddress(url), jitter=jitter)
        return url

    @cached_property
    def store(self) -> Store:
        """The store that executes this app's queries."""
        return Store(self.address, jitter=jitter, patience_s=self._patience_s)

    @cached_property
    def astore(self) -> AsyncStore:
        """The store that executes this app's queries on the running event loop."""
        return AsyncStore(self.address, jitter=jitter, patience_s=self._patience_s)

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
