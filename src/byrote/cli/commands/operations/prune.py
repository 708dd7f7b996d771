# SPDX-License-Identifier: MIT
"""`byrote prune`: deletes now what workers would delete in the next ten minutes."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import click
import msgspec

from byrote.assembly.settings import resolve
from byrote.cli.database import open_store
from byrote.cli.options import DurationParam, database_options
from byrote.cli.output.tables import print_fields, print_json
from byrote.store import queries
from byrote.store.queries.retention import Prunable
from byrote.store.runners.sync import Store

STEP = 5_000
START = "00000000-0000-0000-0000-000000000000"
PARTS = {
    "done": "ended runs",
    "events": "events",
    "outputs": "output of attempts",
    "dead": "dead letters",
    "shadows": "shadow runs",
    "workers": "silent workers",
}
BY_DAY = frozenset({"done", "events", "outputs"})


class Days(DurationParam):
    """A duration of at least a day."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read a duration of a day or more: whole days are dropped."""
        kept = super().convert(value, param, ctx)
        if kept < timedelta(days=1):
            self.fail("Whole days are dropped; the minimum is 1d.", param, ctx)
        return kept


@click.command(epilog="Example: byrote prune --dry-run --keep-done 7d")
@database_options
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option(
    "--keep-done",
    type=Days(),
    help="How long to keep ended runs; default: as set for their queues.",
)
@click.option(
    "--keep-dead",
    type=DurationParam(),
    help="How long to keep dead letters; default: as set for their queues.",
)
@click.option(
    "--keep-events", type=Days(), help="How long to keep events and output; default: `keep_events`."
)
def prune(*, url: str | None, as_json: bool, dry_run: bool, **limits: timedelta | None) -> None:
    """Delete now what is past its retention time.

    Workers do it every ten minutes: ended runs are deleted after 30 days and dead letters after 90,
    unless their queue is set otherwise; events and output after `keep_events`. The options apply to
    this call only, and to every queue. Ended runs, events and output are deleted by whole days, in
    UTC, together with their steps, artifacts and expired memoized results.
    """
    kept = {name: value for name, value in limits.items() if value is not None}
    kept.setdefault("keep_events", resolve({"database_url": url}).settings.keep_events)
    with open_store(url) as store:
        found = _added(store.all(queries.prunable(**kept)))
        more = {} if dry_run else _forget(store, **kept)
    if as_json:
        print_json({"dry_run": dry_run, **_numbers(found), **more})
        return
    click.echo("This would be deleted; nothing was deleted:" if dry_run else "This was deleted:")
    print_fields({**{PARTS[part]: _words(found[part]) for part in PARTS}, **more})


def _added(rows: Iterable[Prunable]) -> dict[str, Prunable]:
    """Sum the rows by part; shadow runs are stored in two tables."""
    found = {part: Prunable(part, 0, None, None, 0) for part in PARTS}
    for row in rows:
        whole = found[row.part]
        number, held = whole.number + row.number, whole.held + row.held
        found[row.part] = msgspec.structs.replace(row, number=number, held=held)
    return found


def _forget(store: Store, *, keep_done: timedelta | None = None, **others: Any) -> dict[str, int]:
    """Prune, then delete orphaned rows; returns the counts."""
    store.all(queries.prune(keep_done=keep_done, **others))
    counted = {"steps": 0, "memos": 0, "artifacts": 0}
    while True:
        [counts] = store.all(queries.delete_orphans(keep_done=keep_done, limit=STEP))
        [memos] = store.all(queries.prune_memos(limit=STEP))
        counted["steps"] += sum(counts)
        counted["memos"] += memos
        if max(*counts, memos) < STEP:
            break
    at: str | None = START
    while at is not None:
        [page] = store.all(queries.prune_artifacts(after=at))
        counted["artifacts"] += page.removed
        at = page.reached
    digest: str | None = ""
    while digest is not None:
        digest = store.all(queries.prune_blobs(after=digest))[0].reached
    return counted


def _numbers(found: Mapping[str, Prunable]) -> dict[str, Any]:
    days = {f"{part}_days": found[part].number for part in PARTS if part in BY_DAY}
    return days | {part: found[part].held for part in PARTS}


def _words(found: Prunable) -> str:
    if found.first is None or found.last is None:
        return "none" if found.part in BY_DAY else f"{found.number:,}"
    if found.number == 1:
        days = f"1 day, {found.first}"
    else:
        days = f"{found.number:,} days, {found.first} to {found.last}"
    return f"{days}, about {found.held:,}"
