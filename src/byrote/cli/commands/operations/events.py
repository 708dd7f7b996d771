# SPDX-License-Identifier: MIT
"""`byrote events`: the event log, read by a cursor that misses nothing."""

import re
import time
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from byrote.cli.database import open_store, whole_id
from byrote.cli.options import RunId, database_options
from byrote.cli.output.tables import moment, print_json
from byrote.core.text.printable import one_line
from byrote.store import queries
from byrote.store.queries.log import BEGINNING, LoggedEvent
from byrote.store.runners.sync import Store

LOOK_S = 0.3
PAGE = 500
_CURSOR = re.compile(r"\d{1,20}\.-?\d{1,19}")


class Cursor(click.ParamType[str]):
    """A position in the log: the `cursor` of an event, or `0` for the beginning."""

    name = "cursor"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the form."""
        if value == "0":
            return BEGINNING
        if not _CURSOR.fullmatch(value):
            self.fail(
                f"{value!r} is not a cursor; use one that `byrote events` printed, or 0.",
                param,
                ctx,
            )
        return str(value)


@click.command(epilog="Example: byrote events --follow --json")
@database_options
@click.option("--after", type=Cursor(), help="Begin after this cursor; 0 is the beginning.")
@click.option("--last", type=click.IntRange(0, 10_000), default=20, show_default=True,
              help="Without --after, number of latest events to begin with.")  # fmt: skip
@click.option("--kind", help="Only events of this kind, such as Failed.")
@click.option("--run", "begun", type=RunId(), help="Only events of this run.")
@click.option("--follow", is_flag=True, help="Wait for new events until interrupted.")
def events(
    *,
    url: str | None,
    as_json: bool,
    after: str | None,
    last: int,
    kind: str | None,
    begun: str | None,
    follow: bool,
) -> None:
    """Show events of the log; no event ever appears before a cursor you have passed.

    Each event has a cursor; --after continues from there and misses nothing, however late a
    transaction commits. An event is shown once every transaction that began before it has ended: an
    old open transaction delays the stream, not the queue.
    """
    with open_store(url) as store:
        run_id = None if begun is None else whole_id(store, begun)
        start = after or _before_last(store, last)
        for event in _stream(store, start, kind=kind, run_id=run_id, follow=follow):
            if as_json:
                print_json({"cursor": event.cursor, **_fields(event)})
            else:
                click.echo(_line(event))


def _before_last(store: Store, last: int) -> str:
    return store.first(queries.cursor(back=last)) or BEGINNING


def _stream(
    store: Store, cursor: str, *, kind: str | None, run_id: str | None, follow: bool
) -> Iterator[LoggedEvent]:
    while True:
        page = store.all(queries.events(cursor, kind=kind, run_id=run_id, limit=PAGE))
        yield from page
        if page:
            cursor = page[-1].cursor
        elif not follow:
            return
        if follow and len(page) < PAGE:
            time.sleep(LOOK_S)


def _fields(event: LoggedEvent) -> dict[str, Any]:
    fields = msgspec.structs.asdict(event)
    moved = zip(fields.pop("runs"), fields.pop("attempts"), fields.pop("moves"), strict=True)
    runs = [{"id": run_id, "attempt": attempt, "move": move} for run_id, attempt, move in moved]
    return {**fields, "runs": runs}


def _line(event: LoggedEvent) -> str:
    shown = " ".join(event.runs[:3])
    more = f" and {len(event.runs) - 3} more" if len(event.runs) > 3 else ""
    by = f" by {event.worker}" if event.worker else ""
    return one_line(f"{event.cursor}  {moment(event.at)}  {event.kind:<15} {shown}{more}{by}")
