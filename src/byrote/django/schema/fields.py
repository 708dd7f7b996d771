# SPDX-License-Identifier: MIT
"""Columns that Django has no field for, without django.contrib.postgres."""

from typing import Any

from django.db import models


class ArrayOf(models.Field):
    """A one-dimensional PostgreSQL array, as a list."""

    empty_strings_allowed = False

    def __init__(self, item_type: str = "text", **options: Any) -> None:
        self.item_type = item_type
        super().__init__(**options)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """The form that migrations write."""
        name, path, _, options = super().deconstruct()
        return name, path, [self.item_type], options

    def db_type(self, connection: Any) -> str:
        """The column's type."""
        del connection
        return f"{self.item_type}[]"
