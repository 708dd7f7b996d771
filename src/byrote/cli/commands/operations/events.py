# SPDX-License-Identifier: MIT
"""`byrote events`: the event log, read by a cursor that misses nothing."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import click

from byrote.cli.database import open_store, whole_id
from byrote.cli.options import RunId, database_options
from byrote.cli.output.tables import moment, print_json
from byrote.core.log.cursor import BEGINNING, Cursor
from byrote.core.log.record import LogEntry
from byrote.core.text.printable import one_line
from byrote.store import queries
from byrote.store.runners.sync import Store

LOOK_S = 0.3
PAGE = 500


class CursorParam(click.ParamType[Cursor]):
    """A position in the log: the `cursor` of an event, or `0` for the beginning."""

    name = "cursor"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Cursor:
        """Read the cursor."""
        try:
            return Cursor.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(epilog="Example: byrote events --follow --json")
@database_options
@click.option("--after", type=CursorParam(), help="Begin after this cursor; 0 is the beginning.")
@click.option("--last", type=click.IntRange(0, 10_000), default=20, show_default=True,
              help="Without --after, number of latest events to begin with.")  # fmt: skip
@click.option("--kind", help="Only events of this kind, such as Failed.")
@click.option("--run", "begun", type=RunId(), help="Only events of this run.")
@click.option("--follow", is_flag=True, help="Wait for new events until interrupted.")
def events(
    *,
    url: str | None,
    as_json: bool,
    after: Cursor | None,
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
                print_json(_fields(event))
            else:
                click.echo(_line(event))


def _before_last(store: Store, last: int) -> Cursor:
    return store.first(queries.cursor(back=last)) or BEGINNING


def _stream(
    store: Store, cursor: Cursor, *, kind: str | None, run_id: str | None, follow: bool
) -> Iterator[Sequence[LogEntry]]:
    while True:
        page = store.all(queries.log_after(cursor, kind=kind, run_id=run_id, limit=PAGE))
        yield from page
        if page:
            cursor = page[-1][-1].cursor.event_end
        elif not follow:
            return
        if follow and len(page) < PAGE:
            time.sleep(LOOK_S)


def _fields(event: Sequence[LogEntry]) -> dict[str, Any]:
    first = event[0]
    moved = [entry for entry in event if entry.run is not None]
    data = {entry.run: entry.data for entry in moved if entry.data is not None} or None
    return {
        "cursor": str(first.cursor.event_end),
        "xid": first.xid,
        "seq": first.seq,
        "at": first.at,
        "kind": first.kind,
        "worker": first.worker,
        "leased_until": first.leased_until,
        "data": data if moved else first.data,
        "runs": [{"id": each.run, "attempt": each.attempt, "move": each.move} for each in moved],
    }


def _line(event: Sequence[LogEntry]) -> str:
    first = event[0]
    shown = " ".join(entry.run or "" for entry in event[:3])
    more = f" and {len(event) - 3} more" if len(event) > 3 else ""
    by = f" by {first.worker}" if first.worker else ""
    at, cursor = moment(first.at), first.cursor.event_end
    return one_line(f"{cursor}  {at}  {first.kind:<15} {shown}{more}{by}")
