# SPDX-License-Identifier: MIT
"""Lends executors the one statement they run on a task's own connection."""

from collections.abc import Mapping
from typing import Any

from byrote.store import queries


def once(run_id: str, key: str) -> tuple[bytes, Mapping[str, Any]]:
    """The statement that marks an effect of a run as done, and its parameters."""
    query = queries.once(run_id, key)
    return query.sql, query.args
