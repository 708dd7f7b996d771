# SPDX-License-Identifier: MIT
"""`byrote runs logs`: what the attempts of a run printed."""

import time

import click
import msgspec

from byrote.cli.database import open_store, whole_id
from byrote.cli.options import RunId, database_options
from byrote.cli.output.follow import Follower
from byrote.cli.output.tables import print_json
from byrote.core.errors import RunNotFound
from byrote.core.run import Run
from byrote.store import queries
from byrote.store.rows import LiveOutput, Printed
from byrote.store.runners.sync import Store

LOOK_S = 0.3


@click.command(epilog="Example: byrote runs logs 01932c4e-8d5b-7a90-b1c2-3d4e5f607182 --follow")
@click.argument("begun", metavar="ID", type=RunId())
@database_options
@click.option("--attempt", type=click.IntRange(min=1), help="Only this attempt.")
@click.option("--follow", is_flag=True, help="Show what is printed until the run has ended.")
def logs(begun: str, *, url: str | None, as_json: bool, attempt: int | None, follow: bool) -> None:
    """Show what a run printed: the end of stdout and of stderr, attempt by attempt.

    An attempt's output is stored when the attempt has ended, whatever ended it. At most 1 MiB of
    each stream is kept. With --follow, the output of an attempt under way is shown as it is
    printed; with --json, each attempt is one object, once it has ended.
    """
    with open_store(url) as store:
        shown = _Json() if as_json else Follower()
        _follow(store, whole_id(store, begun), shown, attempt=attempt, once=not follow)
    if not shown.printed and not as_json:
        click.echo("Nothing was printed.")


class _Json(Follower):
    """Shows each attempt as an object, once it has ended."""

    def live(self, seen: LiveOutput) -> None:
        """Wait for its end."""

    def end(self, output: Printed) -> None:
        if output.attempt > self.ended:
            self.ended = output.attempt
            print_json(msgspec.structs.asdict(output))


def _follow(store: Store, run_id: str, shown: Follower, *, attempt: int | None, once: bool) -> None:
    """Show every attempt's output once, as it becomes known."""
    while True:
        # The status first: all output of a finished run is stored by then.
        run = store.first(queries.run(run_id))
        if run is None:
            raise RunNotFound(run_id)
        seen = None if once or run.finished else store.first(queries.watch(run_id))
        for output in store.all(queries.outputs(run_id, attempt=attempt)):
            shown.end(output)
        if once or _over(run, attempt):
            return
        if seen is not None and attempt in (None, seen.attempt):
            shown.live(seen)
        time.sleep(LOOK_S)


def _over(run: Run, attempt: int | None) -> bool:
    return run.finished or (attempt is not None and run.attempts > attempt)
