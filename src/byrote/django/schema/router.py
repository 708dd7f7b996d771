# SPDX-License-Identifier: MIT
"""A database router that stores Byrote's tables in the database that TASKS names."""

from typing import Any

from byrote.django import compat

LABEL = "byrote"


class Router:
    """Sends Byrote's models to the DATABASE of the first Byrote backend, and migrates only there.

    For DATABASE_ROUTERS, when the queue is not in the default database.
    """

    def db_for_read(self, model: Any, **_hints: Any) -> str | None:
        """The database that runs are read from."""
        return _alias() if model._meta.app_label == LABEL else None

    def db_for_write(self, model: Any, **_hints: Any) -> str | None:
        """The database that runs are enqueued in."""
        return _alias() if model._meta.app_label == LABEL else None

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool | None:
        """Whether a database has Byrote's tables."""
        return db in _homes() if app_label == LABEL else None


def _homes() -> list[str]:
    from byrote.django.backend.backend import Backend  # noqa: PLC0415 -- routers load before backends.

    ours = [backend for backend in compat.task_backends.all() if isinstance(backend, Backend)]
    return [backend.settings.database or "default" for backend in ours]


def _alias() -> str | None:
    return next(iter(_homes()), None)
