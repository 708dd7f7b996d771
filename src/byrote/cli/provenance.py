# SPDX-License-Identifier: MIT
"""What executed the attempts of a run, as people and programs are told it."""

from collections.abc import Mapping
from typing import Any

import click

from byrote.cli.show import printable
from byrote.core.provenance import brief
from byrote.core.run import Run
from byrote.store import queries
from byrote.store.rows import Environment
from byrote.store.sync import Store

ATTEMPTS_MAX = 1000
"""From here on a run keeps only its latest attempt's, see 0003_provenance.sql."""
SHOWN_MAX = 8


def environments(store: Store, *runs: Run) -> dict[int, Environment]:
    """Every environment that these runs name, by its number."""
    wanted = {number for run in runs for number in run.provenance if number is not None}
    return {found.id: found for found in store.all(queries.provenances(sorted(wanted)))}


def known(run: Run, found: Mapping[int, Environment]) -> list[tuple[int, Environment]]:
    """The attempts of a run whose environment is known, with it."""
    numbered = enumerate(run.provenance, 1)
    return [(i, found[n]) for i, n in numbered if n is not None and n in found]


def provenance_fields(run: Run, found: Mapping[int, Environment]) -> list[dict[str, Any]]:
    """Attempt by attempt, the whole document and its hash; attempts nobody knows are left out."""
    return [
        {"attempt": attempt, "hash": environment.hash, **environment.doc}
        for attempt, environment in known(run, found)
    ]


def last_doc(run: Run, found: Mapping[int, Environment]) -> Mapping[str, Any] | None:
    """What executed the last attempt, if that is known."""
    last = min(run.attempts, ATTEMPTS_MAX)
    return next((there.doc for attempt, there in known(run, found) if attempt == last), None)


def print_provenance(run: Run, found: Mapping[int, Environment]) -> None:
    """Print one line per attempt whose environment is known; those of the same share it."""
    told: dict[str, list[int]] = {}
    for attempt, there in known(run, found):
        told.setdefault(brief(there.doc, f"{run.task}@{run.version}"), []).append(attempt)
    if told:
        click.echo("\nprovenance")
    for line, attempts in told.items():
        some = ", ".join(map(str, attempts[:SHOWN_MAX])) + " …" * (len(attempts) > SHOWN_MAX)
        click.echo(printable(f"  attempt {some}: {line}"))
