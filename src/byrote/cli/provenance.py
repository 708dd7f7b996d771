# SPDX-License-Identifier: MIT
"""What executed the attempts of a run, as people and programs are told it."""

from collections.abc import Mapping
from typing import Any

import click

from byrote.assembly.environments import known
from byrote.cli.show import printable
from byrote.core.provenance import brief
from byrote.core.run import Run
from byrote.store.rows import Environment

SHOWN_MAX = 8


def provenance_fields(run: Run, found: Mapping[int, Environment]) -> list[dict[str, Any]]:
    """Attempt by attempt, the whole document and its hash; attempts nobody knows are left out."""
    return [
        {"attempt": attempt, "hash": environment.hash, **environment.doc}
        for attempt, environment in known(run, found)
    ]


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
