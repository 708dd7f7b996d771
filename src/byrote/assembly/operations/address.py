# SPDX-License-Identifier: MIT
"""The address of the database that settings describe."""

from byrote.assembly.settings import Settings
from byrote.store.connect import DatabaseAddress


def address_of(
    settings: Settings,
    url: str,
    *,
    name: str = "byrote",
    schema: str | None = None,
    patience_s: float | None = None,
) -> DatabaseAddress:
    """Return the address of this URL; `schema` applies where the settings have none."""
    return DatabaseAddress(
        url,
        name=name,
        pooled=settings.pooled,
        patience_s=patience_s,
        schema=settings.schema or schema,
    )
