# SPDX-License-Identifier: MIT
"""Replies as the SDK reads them: msgspec reads no `Raw | None`, so null is the text of null."""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from byrote.core.errors import RunNotFound
from byrote.wire.leases import Lease, Leases
from byrote.wire.messages import RunView
from byrote.wire.problems import Refused


class LeaseRead(Lease, frozen=True, kw_only=True):
    """A lease."""

    retry: Raw
    labels: Raw


class LeasesRead(Leases, frozen=True, kw_only=True):
    """Read the claimed leases."""

    leases: list[LeaseRead]  # type: ignore[assignment]  # Read, never written.


class RunRead(RunView, frozen=True, kw_only=True):
    """A run."""

    result: Raw
    retry: Raw


def text_of(raw: Raw) -> str | None:
    """A value's text; None if null stands for an absent value."""
    text = bytes(raw).decode()
    return None if text == "null" else text


def given(raw: Raw | UnsetType) -> str | None:
    """A value's text; None if it is absent."""
    return None if raw is UNSET else bytes(raw).decode()


def missing(run_id: str) -> dict[str, Callable[[Refused], Any]]:
    """Turn "not found" of a run into RunNotFound."""

    def unknown(refused: Refused) -> Any:
        raise RunNotFound(run_id) from refused

    return {"not_found": unknown}
