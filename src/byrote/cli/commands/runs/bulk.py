# SPDX-License-Identifier: MIT
"""Options and output of commands on all runs that match filters."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from byrote.assembly.operations.bulk import count, move_matching
from byrote.assembly.operations.methods import perform
from byrote.cli.errors import FAILED
from byrote.cli.options import Label, MomentParam, SpecHash
from byrote.cli.output.tables import print_json, show_locked
from byrote.core.errors import BadOption
from byrote.core.ports.replies import DoneRuns
from byrote.core.state import Status
from byrote.store.locks import Verb
from byrote.store.queries.matching import MatchCount, RunFilter
from byrote.store.runners.sync import Store

since_option = click.option(
    "--since",
    type=MomentParam(),
    help="A time, or an age such as 1h: runs that ended or, unfinished, were enqueued since then.",
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show how many runs match, and change nothing."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def filter_options(*statuses: Status) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the filters of `byrote runs list`, and the options of a command on many runs."""
    options = (
        click.option("--status", type=click.Choice(list(statuses), case_sensitive=False)),
        click.option("--queue"),
        click.option("--task", help="The task's name."),
        click.option("--hash", "spec_hash", type=SpecHash(), help="Runs with this spec hash."),
        click.option(
            "--label", "labels", type=Label(), multiple=True, help="May be given many times."
        ),
        since_option,
        dry_run_option,
        yes_option,
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def named(filters: dict[str, Any]) -> dict[str, Any]:
    """Return the filters that were given."""
    given = {name: value for name, value in filters.items() if value not in (None, ())}
    if "labels" in given:
        given["labels"] = dict(given["labels"])
    return given


def check_ids_or_filters(ids: Sequence[str], given: dict[str, Any], *, dry_run: bool) -> None:
    """Raise BadOption unless there are ids or filters, and not both."""
    if ids and (given or dry_run):
        raise BadOption("Give the ids of runs, or filters with --dry-run, not both.")
    if not ids and not given:
        raise BadOption("Give the ids of runs, or a filter such as --task or --queue.")


def move_matches(
    store: Store,
    verb: Verb[Any],
    chosen: RunFilter,
    *,
    words: tuple[str, str],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Count, ask, change in batches, and report; `words` are as in ("Retry", "retried")."""
    found = perform(count(chosen), store)
    number = sum(one.runs for one in found)
    if number and not dry_run:
        _confirm(words[0], found, yes=yes)
        done = _move(store, verb, chosen, found, label=words[1], quiet=as_json)
    else:
        done = DoneRuns()
    _report(found, done, words[1], dry_run=dry_run, as_json=as_json)


def _confirm(verb: str, found: Sequence[MatchCount], *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadOption(f"{verb} {_spoken(found)}? This is not a terminal: add --yes to do it.")
    click.confirm(f"{verb} {_spoken(found)}?", abort=True, err=True)


def _spoken(found: Sequence[MatchCount]) -> str:
    parts = [f"{one.runs:,} {one.status.lower()}" for one in found]
    runs = "run" if sum(one.runs for one in found) == 1 else "runs"
    return f"{' and '.join(parts) or 0} {runs}"


def _move(
    store: Store,
    verb: Verb[Any],
    chosen: RunFilter,
    found: Sequence[MatchCount],
    *,
    label: str,
    quiet: bool,
) -> DoneRuns[str]:
    newest = max(one.newest for one in found)
    with click.progressbar(
        length=sum(one.runs for one in found),
        label=label,
        file=sys.stderr,
        hidden=quiet or not sys.stderr.isatty(),
    ) as bar:
        return perform(move_matching(verb, chosen, newest, report=bar.update), store)


def _report(
    found: Sequence[MatchCount],
    done: DoneRuns[str],
    word: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    number = sum(one.runs for one in found)
    if as_json:
        matched = {one.status.value: one.runs for one in found}
        fields = {"dry_run": dry_run, "matched": matched, "done": len(done)}
        print_json({**fields, "locked": done.locked})
    elif dry_run:
        click.echo(f"{_spoken(found)} would be {word}; nothing was changed.")
    elif not number:
        click.echo("No runs match.")
    else:
        others = number - len(done) - len(done.locked)
        rest = f"; {others:,} had changed meanwhile" if others else ""
        click.echo(f"{len(done):,} {'run' if len(done) == 1 else 'runs'} {word}{rest}.")
        show_locked(len(done.locked), as_json=as_json)
    if done.locked:
        click.get_current_context().exit(FAILED)
