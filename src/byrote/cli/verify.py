# SPDX-License-Identifier: MIT
"""`byrote verify`: proves or refutes, on a live database, what Byrote promises."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
import msgspec

from byrote.cli.database import open_url
from byrote.cli.failure import CHECK_FAILED
from byrote.cli.options import database_options
from byrote.cli.show import coloured, paint, print_json, printable
from byrote.core.finding import CHECKS, Finding
from byrote.store.connect import Door
from byrote.store.verify import Report, Tell
from byrote.store.verify import verify as examine

SHOWN = 50


@click.command(epilog="Example: byrote verify --json")
@database_options
def verify(*, url: str | None, as_json: bool) -> None:
    """Check every run against the event log and against the rules; exit with 3 if any breaks one.

    Reads one snapshot of the whole database, in bounded memory, and changes and locks nothing:
    workers may go on meanwhile. To verify a dump, restore it somewhere and give its --url.

    What is checked, and what a finding means, is told in docs/explanation/guarantees.md.
    """
    with open_url(url) as found, _progress(silent=as_json) as tell:
        report = examine(Door(found), tell=tell)
    if as_json:
        print_json({"sound": report.sound, **msgspec.to_builtins(report)})
    else:
        _show(report)
    if not report.sound:
        click.get_current_context().exit(CHECK_FAILED)


@contextmanager
def _progress(*, silent: bool) -> Iterator[Tell]:
    """A bar on standard error, where somebody may watch it."""
    if silent or not sys.stderr.isatty():
        yield lambda _done, _whole: None
        return
    with click.progressbar(length=1, label="runs", file=sys.stderr) as bar:
        shown = 0

        def tell(done: int, whole: int) -> None:
            nonlocal shown
            if done % 500 and done < whole:
                return
            bar.length = max(whole, done)
            bar.update(done - shown)
            shown = done

        yield tell


def _show(report: Report) -> None:
    for check, promise in CHECKS.items():
        count = report.counts[check]
        state = "fail" if count else "ok"
        said = f"  {count:,} found" if count else ""
        click.echo(f"{paint(state, f'{state:<4}')}  {check:<9} {promise}{said}", color=coloured())
    click.echo(f"\n{report.runs:,} runs and {report.events:,} events were read.")
    for finding in report.findings[:SHOWN]:
        click.echo(_line(finding))
    total = sum(report.counts.values())
    if total > SHOWN:
        click.echo(f"… and {total - SHOWN:,} more; --json lists up to {len(report.findings):,}.")


def _line(finding: Finding) -> str:
    where = finding.run or "database"
    move = "" if finding.move is None else f" move {finding.move}"
    return printable(f"{finding.check}: {where}{move}: {finding.said}")
