# SPDX-License-Identifier: MIT
"""The environments that executed the attempts of a run, as text and as JSON."""

from collections.abc import Mapping
from typing import Any

import click

from byrote.assembly.replay.environments import known
from byrote.core.json.seed import run_digest, seed_of
from byrote.core.replay.provenance import brief, code_of
from byrote.core.run import Run
from byrote.core.text.printable import one_line
from byrote.store.rows import Environment

SHOWN_MAX = 8


def provenance_fields(run: Run, found: Mapping[int, Environment]) -> list[dict[str, Any]]:
    """Attempt by attempt, the whole document and its hash; unknown attempts are left out."""
    return [
        {"attempt": attempt, "hash": environment.hash, **environment.doc}
        for attempt, environment in known(run, found)
    ]


def seed_in(run: Run, found: Mapping[int, Environment]) -> int:
    """The seed that the attempts of a run have: by its task, that of the run or of the spec."""
    mine = (code_of(there.doc, f"{run.task}@{run.version}") for _, there in known(run, found))
    if any(code.get("seed") == "spec" for code in mine):
        return seed_of(bytes.fromhex(run.spec_hash))
    repeated = run.replay_of if run.shadow else None
    return seed_of(run_digest(repeated or run.id, run.labels))


def print_provenance(run: Run, found: Mapping[int, Environment]) -> None:
    """Print one line per known environment, with the attempts that it executed."""
    lines: dict[str, list[int]] = {}
    for attempt, there in known(run, found):
        lines.setdefault(brief(there.doc, f"{run.task}@{run.version}"), []).append(attempt)
    if lines:
        click.echo("\nprovenance")
    for line, attempts in lines.items():
        some = ", ".join(map(str, attempts[:SHOWN_MAX])) + " …" * (len(attempts) > SHOWN_MAX)
        click.echo(one_line(f"  attempt {some}: {line}"))
