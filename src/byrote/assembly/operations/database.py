# SPDX-License-Identifier: MIT
"""The database of an app: its settings, its connections and their end.

PostgreSQL's driver is imported with the first connection. It is two thirds of the time that
`import byrote; byrote.App` would take otherwise, and a hand whose tasks do not enqueue never needs
it: `bench/footprint.py` measures both. Whether it is installed is checked at once.
"""

import atexit
import os
import threading
from datetime import timedelta
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from byrote.assembly.identity import jitter
from byrote.assembly.settings import Settings, resolve
from byrote.core.duration import duration
from byrote.core.ports.app import WithoutReports
from byrote.core.text.schema_name import checked_schema

if TYPE_CHECKING:
    from byrote.store.connect import DatabaseAddress
    from byrote.store.runners.aio import AsyncStore
    from byrote.store.runners.sync import Store

if find_spec("psycopg") is None:
    raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

_opening = threading.RLock()


class OpenedOnce[T](cached_property[T]):
    """A cached property that one thread computes while others wait for it.

    Two threads that enqueue for the first time at once would otherwise make a store each, and the
    connections of one would not be closed.
    """

    if not TYPE_CHECKING:  # mypy reads the overloads of cached_property.

        def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
            with _opening:
                return super().__get__(instance, owner)


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
        """The database set in code, or `embedded`; absent: that of the settings."""
        self.schema = None if schema is None else checked_schema(schema)
        """The schema set in code; absent: that of the settings, else the search path's first."""
        self._patience = None if enqueue_patience is None else duration(enqueue_patience)
        self._pool = pool
        self._pool_is_async = pool is not None and _is_async(pool)
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

    @OpenedOnce
    def address(self) -> "DatabaseAddress":
        """The database's address; starts the embedded server if it was asked for.

        Raises NoDatabase if no database is set and `byrote[embedded]` is not installed.
        """
        from byrote.assembly.operations.address import address_of  # noqa: PLC0415 -- see above.
        from byrote.embedded.choice import external  # noqa: PLC0415 -- see above.

        given = self.settings.database_url
        url = external(given or self._url_of_pool()) or self._embedded(given)
        return address_of(self.settings, url, patience_s=self._patience_s)

    def _url_of_pool(self) -> str | None:
        """The database of the pool, if it was given as a text: it may also be a function."""
        written = getattr(self._pool, "conninfo", None)
        return written if isinstance(written, str) and written else None

    def _embedded(self, given: str | None) -> str:
        from byrote.assembly.operations.address import address_of  # noqa: PLC0415 -- see above.
        from byrote.embedded.choice import open_own  # noqa: PLC0415 -- seldom needed.
        from byrote.store.migrate import migrate  # noqa: PLC0415 -- see above.

        server, url = open_own(given, Path.cwd(), environ=os.environ)
        atexit.register(server.close)
        migrate(address_of(self.settings, url), jitter=jitter)
        return url

    @OpenedOnce
    def store(self) -> "Store":
        """The store that executes this app's queries."""
        from byrote.store.runners.sync import Store  # noqa: PLC0415 -- see above.

        return Store(
            self.address,
            jitter=jitter,
            size=self.settings.pool_size,
            patience_s=self._patience_s,
            pool=None if self._pool_is_async else self._pool,
        )

    @OpenedOnce
    def astore(self) -> "AsyncStore":
        """The store that executes this app's queries on the running event loop."""
        from byrote.store.runners.aio import AsyncStore  # noqa: PLC0415 -- see above.

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
        from byrote.store.migrate import migrate  # noqa: PLC0415 -- see above.

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


def _is_async(pool: Any) -> bool:
    from byrote.store.runners.pools import is_async_pool  # noqa: PLC0415 -- see above.

    return is_async_pool(pool)
