# SPDX-License-Identifier: MIT
"""Runs `byrote replay --verify` and prints the verdicts."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TextIO
from xml.etree import ElementTree as ET

import click
import msgspec

from byrote.assembly.clock import monotonic
from byrote.assembly.replay.originals import LAST_MAX, choose, find
from byrote.assembly.replay.session import FindTask, ReplayOptions, replay_session
from byrote.assembly.settings import resolve
from byrote.cli.commands.runs.diff import print_change, summary
from byrote.cli.database import open_app, whole_id
from byrote.cli.errors import CHECK_FAILED, FAILED, NOT_FOUND
from byrote.cli.options import is_hash
from byrote.cli.output.junit import case_of, suite_of
from byrote.cli.output.tables import coloured, print_json
from byrote.core.errors import BadOption
from byrote.core.json.diff import Changes
from byrote.core.replay.verdict import Differs, NotReplayable, Replayed, Same
from byrote.core.text.printable import one_line
from byrote.store.runners.sync import Store

SHOWN_MAX = 20
"""Maximum number of verdicts printed as text; JSON has all."""
COLOURS = {"same": "green", "differs": "red", "not replayable": "yellow"}


def verify_runs(
    url: str | None,
    which: str | None,
    *,
    task: str | None,
    as_json: bool,
    app: str | None,
    how: Mapping[str, Any],
    junit: TextIO | None,
    allow_not_replayable: bool,
    **chosen: Any,
) -> None:
    """Verify one run, or the newest of a task, and exit with the matching code."""
    settings = resolve({"database_url": url, "app": app}).settings
    if settings.app is None:
        raise BadOption(
            "Verifying executes tasks; name the app with --app MODULE:APP, for example "
            "--app shop.tasks:app, or set `app` in byrote.toml or BYROTE_APP."
        )
    options = ReplayOptions(**{**how, "jobs": how["jobs"] or 1})
    with open_app(url) as opened:
        selected = _selected(opened.store, which, task, **chosen)
        began = monotonic()
        counts: Counter[str] = Counter()
        cases: list[ET.Element] = []
        if selected:
            # Set by projects that import tasks by path; see byrote.django.
            known: FindTask | None = click.get_current_context().obj
            opening = replay_session(settings.app, settings, opened.store, options, recognise=known)
            with opening as session:
                watched = _watched(session.perform(selected), len(selected), quiet=task is None)
                for verdict in _printed(watched, as_json=as_json, alone=task is None):
                    counts[word_of(verdict)] += 1
                    if junit is not None:
                        cases.append(case_of(verdict))
    seconds = monotonic() - began
    if junit is not None:
        junit.write(suite_of(task or "run", cases, counts, seconds))
    if task is not None:
        _summarise(task, counts, seconds, as_json=as_json)
    click.get_current_context().exit(_code(counts, lenient=allow_not_replayable))


def _selected(
    store: Store,
    which: str | None,
    task: str | None,
    *,
    last: int | None,
    since: datetime | timedelta | None,
    failed: bool,
    version: int | None,
    label: Sequence[tuple[str, str]],
) -> list[str]:
    if task is not None:
        found = choose(
            store,
            task,
            last=last,
            since=since,
            failed=failed,
            version=version,
            labels=dict(label),
        )
        if len(found) == LAST_MAX:
            click.echo(f"byrote: only the newest {LAST_MAX:,} are replayed.", err=True)
        return found
    named = str(which)
    return [find(store, named if is_hash(named) else whole_id(store, named))]


def _code(counts: Counter[str], *, lenient: bool) -> int:
    if not counts:
        return NOT_FOUND
    if counts["differs"]:
        return CHECK_FAILED
    # A gate that compared nothing does not pass.
    allowed = lenient and counts["same"]
    return FAILED if counts["not replayable"] and not allowed else 0


def _watched(verdicts: Iterable[Replayed], total: int, *, quiet: bool) -> Iterator[Replayed]:
    """Yield the verdicts and, on a terminal, draw a progress bar with their counts."""
    counts: Counter[str] = Counter()
    with click.progressbar(
        verdicts,
        length=total,
        show_pos=True,
        item_show_func=lambda _verdict: _counts(counts),
        file=sys.stderr,
        hidden=quiet or not sys.stderr.isatty(),
    ) as bar:
        for verdict in bar:
            counts[word_of(verdict)] += 1
            yield verdict


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[word]} {word}" for word in COLOURS if counts[word])


def _printed(verdicts: Iterable[Replayed], *, as_json: bool, alone: bool) -> Iterator[Replayed]:
    """Yield the verdicts, and print those to be shown."""
    shown = 0
    for verdict in verdicts:
        if as_json:
            print_json(msgspec.to_builtins(verdict))
        elif alone or not isinstance(verdict, Same):
            shown += 1
            if shown <= SHOWN_MAX:
                show_verdict(verdict)
        yield verdict
    if shown > SHOWN_MAX:
        click.echo(f"… and {shown - SHOWN_MAX} more; --json and --junit list all.")


def word_of(verdict: Replayed) -> str:
    """The verdict in a word or two."""
    return str(verdict.__struct_config__.tag)


def show_verdict(verdict: Replayed) -> None:
    """Print a verdict for people: where it differs, or why there is nothing to compare."""
    word = word_of(verdict)
    painted = click.style(word, fg=COLOURS[word], bold=True) if coloured() else word
    if sys.stderr.isatty():
        click.echo("\r\033[K", err=True, nl=False)
    match verdict:
        case NotReplayable(original=original, task=task, reason=reason):
            click.echo(f"{painted}  run {original}{f' of {one_line(task)}' if task else ''}")
            click.echo(one_line(f"  {reason}"))
        case Same(original=original, task=task, replay=shadow, hash=found):
            click.echo(f"{painted}  run {original} of {one_line(task)}, replayed as {shadow}")
            click.echo(f"  same hash {found}")
        case Differs(original=original, task=task, replay=shadow):
            click.echo(f"{painted}  run {original} of {one_line(task)}, replayed as {shadow}")
            old, new = verdict.status
            if old is not new:
                click.echo(f"  status was {old}, now {new}")
            _show_part(
                "result" if old == "SUCCESSFUL" or new is not old else "error", verdict.result
            )
            _show_part("artifacts", verdict.artifacts)
            _show_part("steps", verdict.steps)
            _show_part("provenance", verdict.provenance)
    if not isinstance(verdict, NotReplayable) and verdict.withheld:
        click.echo(one_line(f"not sent    {', '.join(map(str, verdict.withheld))}"))


def _show_part(name: str, part: Changes) -> None:
    if not part:
        return
    click.echo(f"{name:<12}{summary(part)}")
    for change in part.changes:
        print_change(change)
    if part.cut:
        click.echo("  … and more")


def _summarise(task: str, counts: Counter[str], seconds: float, *, as_json: bool) -> None:
    whole = counts.total()
    if as_json:
        found = {word.replace(" ", "_"): counts[word] for word in COLOURS}
        print_json({"task": task, "replayed": whole, **found, "seconds": round(seconds, 3)})
    elif whole:
        runs = "1 run" if whole == 1 else f"{whole:,} runs"
        click.echo(f"{runs} of {one_line(task)} replayed in {seconds:.1f} s: {_counts(counts)}.")
    else:
        click.echo(f"No finished run of {one_line(task)} matches.", err=True)
