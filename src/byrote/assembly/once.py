# SPDX-License-Identifier: MIT
"""The one statement that executors run on a task's own connection."""

from collections.abc import Mapping
from typing import Any

from byrote.store import queries


def once(run_id: str, key: str, *, schema: str | None = None) -> tuple[bytes, Mapping[str, Any]]:
    """Return the statement that marks an effect of a run as done, and its parameters."""
    query = queries.once(run_id, key)
    return query.sql_in(schema), query.args
