# SPDX-License-Identifier: MIT
"""`byrote runs diff`: what differs between two runs."""

import click
import msgspec

from byrote.assembly.replay.environments import environments, last_doc
from byrote.cli.database import open_store, whole_id
from byrote.cli.options import RunId, database_options, is_hash
from byrote.cli.output.tables import coloured, print_json
from byrote.core.errors import RightMissing, RunNotFound
from byrote.core.json.diff import Change, Changes
from byrote.core.ports.replies import StepRow
from byrote.core.replay.compare import Comparison, compare
from byrote.core.replay.provenance import SHOWN
from byrote.core.run import Run
from byrote.core.text.printable import one_line
from byrote.store import queries
from byrote.store.runners.sync import Store

VALUE_WIDTH = 80
SIGNS = {"added": "+", "removed": "-", "changed": "~"}
COLOURS = {"added": "green", "removed": "red", "changed": "yellow"}


@click.command(epilog="Example: byrote runs diff 01932c4e-8d5b-7a90 01932c4f-1a2b-7c3d --json")
@click.argument("first", metavar="ID", type=RunId())
@click.argument("second", metavar="ID", type=RunId())
@database_options
def diff(first: str, second: str, *, url: str | None, as_json: bool) -> None:
    """Show what differs between two runs: spec, delivery, provenance, steps, result, execution.

    Places are JSON Pointers; + is only in the second run, - only in the first. Of the provenance,
    the last attempts are compared. A replay from recorded steps shows those. At most 100
    differences of each part are shown. Exits with 0 whether the runs differ or not, with 4 if a
    run does not exist.
    """
    with open_store(url) as store:
        runs = _run(store, first), _run(store, second)
        found = environments(store, *runs)
        steps = _steps(store, runs[0]), _steps(store, runs[1])
    docs = last_doc(runs[0], found), last_doc(runs[1], found)
    compared = compare(*runs, provenances=docs, steps=steps)
    if as_json:
        parts = {name: msgspec.to_builtins(part) for name, part in compared.parts.items()}
        print_json({"first": runs[0].id, "second": runs[1].id, "known": _known(docs), **parts})
    else:
        _show(compared, known=all(_known(docs)))


def _known(docs: tuple[object, object]) -> list[bool]:
    return [doc is not None for doc in docs]


def _run(store: Store, begun: str) -> Run:
    run = store.first(queries.run(whole_id(store, begun)))
    if run is None:
        raise RunNotFound(begun)
    if run.hidden:
        raise RightMissing("This login may not read arguments and results of runs.")
    return run


def _steps(store: Store, run: Run) -> list[StepRow]:
    found = store.all(queries.steps([run.id]))
    if run.shadow and run.replay_of is not None and not found:
        return store.all(queries.steps([run.replay_of]))
    return found


def _show(compared: Comparison, *, known: bool) -> None:
    for name, part in compared.parts.items():
        unknown = name == "provenance" and not known
        click.echo(f"{name:<12}{'unknown' if unknown else summary(part)}")
        if not unknown:
            for change in part.changes:
                print_change(change)
            if part.cut:
                click.echo("  … and more")


def summary(part: Changes) -> str:
    """How many differences there are, in words."""
    number = len(part.changes)
    return f"{number}{'+' if part.cut else ''} different" if number else "same"


def print_change(change: Change) -> None:
    """Print one difference, in its colour where colours are welcome."""
    line = change_line(change)
    click.echo(click.style(line, fg=COLOURS[change.kind]) if coloured() else line)


def change_line(change: Change) -> str:
    """One difference in a line of text."""
    match change.kind:
        case "added":
            values = _short(change.new)
        case "removed":
            values = _short(change.old)
        case _:
            values = f"{_short(change.old)} -> {_short(change.new)}"
    return one_line(f"  {SIGNS[change.kind]} {change.path or '(all of it)'}  {values}")


def _short(value: object) -> str:
    if isinstance(value, str) and is_hash(value):
        return f'"{value[:SHOWN]}…"'
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_WIDTH else f"{text[: VALUE_WIDTH - 1]}…"
