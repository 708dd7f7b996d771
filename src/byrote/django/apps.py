# SPDX-License-Identifier: MIT
"""Byrote as a Django app. Every command of a project imports this, so it imports very little."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import Tags, register


class ByroteConfig(AppConfig):
    """Byrote as a Django app: its tables, its admin, its checks, its command."""

    name = "byrote.django"
    label = "byrote"
    verbose_name = "Byrote"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system check that reads the database's schema."""
        register(check_schema, Tags.database)


def check_schema(databases: Sequence[str] | None = None, **more: Any) -> list[Any]:
    """Whether each database that holds runs has the schema this Byrote needs."""
    if not databases:
        return []  # Django 5.2 calls this without databases on every command.
    from byrote.django.schema.schema_check import faults_of_schema  # noqa: PLC0415 -- few commands check.

    return faults_of_schema(databases, **more)
