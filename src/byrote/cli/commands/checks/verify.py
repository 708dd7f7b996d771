# SPDX-License-Identifier: MIT
"""`byrote verify`: checks Byrote's guarantees on a live database or a dump."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from byrote.cli.database import address_at, open_url
from byrote.cli.errors import CHECK_FAILED
from byrote.cli.options import database_options
from byrote.cli.output.tables import coloured, paint, print_json
from byrote.cli.support.chain_head import load_head, save_head
from byrote.cli.support.dump import restored
from byrote.core.errors import BadOption
from byrote.core.log.findings import CHECKS, Finding
from byrote.core.text.printable import one_line
from byrote.store.connect import DatabaseAddress
from byrote.store.verify import OnProgress, VerifyReport
from byrote.store.verify import verify as examine

SHOWN = 50


@click.command(epilog="Example: byrote verify --json")
@database_options
@click.option(
    "--dump",
    type=click.Path(path_type=Path),
    help="A dump to verify instead: of pg_dump in any format, or of pg_dumpall.",
)
@click.option(
    "--head",
    "head_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file with the head of the log's chain: it must still be in the chain, which may only "
    "have grown; then the new head is written there. It is made if it does not exist.",
)
def verify(*, url: str | None, as_json: bool, dump: Path | None, head_file: Path | None) -> None:
    """Check every run against the event log and against the rules; exit with 3 if any breaks one.

    Reads one snapshot of the whole database, in bounded memory, and changes and locks nothing:
    workers may go on meanwhile.

    With --dump the file is restored to a separate server below TMPDIR, which is removed afterwards.
    A plain dump is a script that is executed: use only dumps that you trust.

    With --head, links that were taken out at the end of the chain are found too. Keep the file
    where users who can write to the database cannot write.

    See docs/explanation/guarantees.md for what is checked and what a finding means.
    """
    kept = None if head_file is None else load_head(head_file)
    with _database(url, dump) as found, _progress(silent=as_json) as report_progress:
        report = examine(found, on_progress=report_progress, kept=kept)
    if as_json:
        print_json({"sound": report.sound, **msgspec.to_builtins(report)})
    else:
        _show(report)
    if head_file is not None and not report.counts.get("chain"):
        _keep(report, head_file)
    if not report.sound:
        click.get_current_context().exit(CHECK_FAILED)


def _keep(report: VerifyReport, head_file: Path) -> None:
    if report.head is not None:
        save_head(head_file, report.head)
    elif report.sound:
        raise BadOption(
            "The log has no chain, so it has no head to store. Set events.chain = true for a "
            "worker, or leave --head out."
        )


@contextmanager
def _database(url: str | None, dump: Path | None) -> Iterator[DatabaseAddress]:
    if dump is None:
        with open_url(url) as found:
            # Not by a pooler's rules: cursors need one session, which a transaction has.
            yield address_at(found, pooled=False)
        return
    if url is not None:
        raise BadOption("Give --url or --dump, not both: a dump is restored to a separate server.")
    with restored(dump) as copy:
        if copy.refused:
            click.echo("PostgreSQL refused parts of the dump; their data may be missing:", err=True)
        for line in copy.refused:
            click.echo(f"  {one_line(line)}", err=True)
        yield copy.address


@contextmanager
def _progress(*, silent: bool) -> Iterator[OnProgress]:
    """A progress bar on standard error if that is a terminal."""
    if silent or not sys.stderr.isatty():
        yield lambda _done, _whole: None
        return
    with click.progressbar(length=1, label="runs", file=sys.stderr) as bar:
        shown = 0

        def report_progress(done: int, whole: int) -> None:
            nonlocal shown
            if done % 500 and done < whole:
                return
            bar.length = max(whole, done)
            bar.update(done - shown)
            shown = done

        yield report_progress


def _show(report: VerifyReport) -> None:
    for check, count in report.counts.items():
        promise = CHECKS[check]
        state = "fail" if count else "ok"
        found = f"  {count:,} found" if count else ""
        click.echo(f"{paint(state, f'{state:<4}')}  {check:<9} {promise}{found}", color=coloured())
    rest = "" if len(report.counts) == len(CHECKS) else " Nothing else was checked."
    click.echo(f"\n{report.runs:,} runs and {report.events:,} events were read.{rest}")
    if report.head is not None:
        head = report.head
        click.echo(
            f"The chain ends with link {head.link:,} of {head.linked_at:%Y-%m-%dT%H:%M:%SZ}, "
            f"{head.hash}; {report.unchained:,} events are not chained yet."
        )
    if report.uncovered:
        click.echo(
            f"{report.uncovered:,} runs are not covered by hashes in the log, which is older than "
            "such hashes or was dropped: specs and results match the hashes beside them."
        )
    for finding in report.findings[:SHOWN]:
        click.echo(_line(finding))
    total = sum(report.counts.values())
    if total > SHOWN:
        click.echo(f"… and {total - SHOWN:,} more; --json lists up to {len(report.findings):,}.")


def _line(finding: Finding) -> str:
    where = finding.run or "database"
    move = "" if finding.move is None else f" move {finding.move}"
    return one_line(f"{finding.check}: {where}{move}: {finding.message}")
