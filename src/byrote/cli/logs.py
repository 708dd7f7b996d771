# SPDX-License-Identifier: MIT
"""`byrote runs logs`: what the attempts of a run printed."""

import threading
from collections.abc import Iterator

import click
import msgspec

from byrote.cli.database import open_store, whole_id
from byrote.cli.options import RunId, database_options
from byrote.cli.show import coloured, print_json, printable
from byrote.core.errors import UnknownRun
from byrote.store import queries
from byrote.store.rows import Printed
from byrote.store.sync import Store

LOOK_S = 0.3


@click.command(epilog="Example: byrote runs logs 01932c4e-8d5b-7a90-b1c2-3d4e5f607182 --attempt 2")
@click.argument("begun", metavar="ID", type=RunId())
@database_options
@click.option("--attempt", type=click.IntRange(min=1), help="Only this attempt.")
@click.option("--follow", is_flag=True, help="Go on until the run has ended.")
def logs(begun: str, *, url: str | None, as_json: bool, attempt: int | None, follow: bool) -> None:
    """Show what a run printed: the end of stdout and of stderr, attempt by attempt.

    An attempt's output is there when the attempt has ended. At most 1 MiB of each stream is kept.
    """
    printed = False
    with open_store(url) as store:
        for output in _outputs(store, whole_id(store, begun), attempt=attempt, follow=follow):
            printed = True
            if as_json:
                print_json(msgspec.structs.asdict(output))
            else:
                _show(output)
    if not printed and not as_json:
        click.echo("Nothing was printed.")


def _outputs(store: Store, run_id: str, *, attempt: int | None, follow: bool) -> Iterator[Printed]:
    """Every attempt's output once, as it becomes known."""
    seen = 0
    while True:
        # The status first: whatever a finished run printed is there by then.
        run = store.first(queries.run(run_id))
        if run is None:
            raise UnknownRun(run_id)
        for output in store.all(queries.outputs(run_id, attempt=attempt)):
            if output.attempt > seen:
                seen = output.attempt
                yield output
        if not follow or run.finished or (attempt is not None and run.attempts > attempt):
            return
        threading.Event().wait(LOOK_S)


def _show(output: Printed) -> None:
    for name, text, dropped in (
        ("stdout", output.stdout, output.stdout_dropped),
        ("stderr", output.stderr, output.stderr_dropped),
    ):
        if text:
            cut = f" ({dropped:,} bytes before this are gone)" if dropped else ""
            head = f"attempt {output.attempt}, {name}{cut}:"
            click.echo(click.style(head, bold=True) if coloured() else head)
            click.echo(printable(text), nl=not text.endswith("\n"))
