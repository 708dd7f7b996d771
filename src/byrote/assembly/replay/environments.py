# SPDX-License-Identifier: MIT
"""Reads the environments that executed the attempts of runs."""

from collections.abc import Mapping
from typing import Any

from byrote.core.run import Run
from byrote.store import queries
from byrote.store.rows import Environment
from byrote.store.runners.sync import Store

ATTEMPTS_MAX = 1000
"""From here on a run keeps only its latest attempt's, see byrote_noted."""


def environments(store: Store, *runs: Run) -> dict[int, Environment]:
    """Return all environments of these runs, by number."""
    numbers = {number for run in runs for number in run.provenance if number is not None}
    return {found.id: found for found in store.all(queries.provenances(sorted(numbers)))}


def known(run: Run, found: Mapping[int, Environment]) -> list[tuple[int, Environment]]:
    """The attempts of a run whose environments are known: (attempt, environment)."""
    numbered = enumerate(run.provenance, 1)
    return [(i, found[n]) for i, n in numbered if n is not None and n in found]


def last_doc(run: Run, found: Mapping[int, Environment]) -> Mapping[str, Any] | None:
    """The environment of the last attempt, if it is known."""
    last = min(run.attempts, ATTEMPTS_MAX)
    return next((there.doc for attempt, there in known(run, found) if attempt == last), None)
