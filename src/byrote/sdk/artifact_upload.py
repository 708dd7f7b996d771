# SPDX-License-Identifier: MIT
"""Stores artifacts of a worker of the service: small ones in a message, large ones as a stream.

A task that stores a large artifact writes it to a file in this worker's spool, or names its own
file; the worker sends it, and deletes the file in the spool. The spool is deleted with the worker.
"""

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from byrote.core.ports.store import ArtifactPort
from byrote.core.run import Leased
from byrote.worker.asks.artifacts import artifact_answers
from byrote.worker.asks.ask_server import AskHandler

PREFIX = "byrote-spool-"


class _Limited(Protocol):
    def limit(self) -> int: ...


@cache
def _spool() -> "tempfile.TemporaryDirectory[str]":
    # Deleted when the process ends; a killed one leaves it in the temporary directory.
    return tempfile.TemporaryDirectory(prefix=PREFIX)


def service_answers(size_max: int) -> Mapping[str, AskHandler]:
    """The verbs of artifacts for the tasks of a worker that has a service."""
    known: dict[str, int] = {}

    def terms(
        artifact_rows: ArtifactPort, _run: Leased, _asked: Mapping[str, Any]
    ) -> dict[str, Any]:
        if not known:
            asked: _Limited = artifact_rows  # type: ignore[assignment]  # The rows of a service have one.
            known["max"] = min(size_max, asked.limit())
        return {"max": known["max"], "location": "", "spool": _spool().name}

    return {**artifact_answers(PREFIX, size_max), "artifact.terms": terms}


def discard(path: Path) -> None:
    """Delete a file that was sent, if it is in the spool; a task's own file stays."""
    if path.parent.name.startswith(PREFIX):
        path.unlink(missing_ok=True)
