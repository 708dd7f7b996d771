# SPDX-License-Identifier: MIT
"""`byrote replay`: enqueues the spec of an earlier run again, byte for byte."""

from datetime import timedelta

import click

from byrote.assembly.identity import new_id
from byrote.cli.database import open_app, whole_id
from byrote.cli.options import RunId, SpecHash, database_options, is_hash, wait_option
from byrote.cli.waiting import tell_result
from byrote.core.errors import UnknownRun
from byrote.store import queries
from byrote.store.sync import Store


@click.command(epilog="Example: byrote replay 01932c4e-8d5b-7a90-b1c2-3d4e5f607182 --wait")
@click.argument("which", metavar="[ID|HASH]", required=False)
@click.option("--requeue-id", type=RunId(), help="The same as ID.")
@click.option("--requeue-hash", type=SpecHash(), help="The same as HASH.")
@database_options
@wait_option
def replay(
    which: str | None,
    *,
    requeue_id: str | None,
    requeue_hash: str | None,
    url: str | None,
    as_json: bool,
    wait: timedelta | None,
) -> None:
    """Enqueue the spec of an earlier run again as a new run, and print the new id.

    HASH is the hash of a spec: its newest run is taken. The new run remembers which run it
    repeats; the earlier one stays as it is.
    """
    named = [word for word in (which, requeue_id, requeue_hash) if word is not None]
    if len(named) != 1:
        raise click.UsageError("Give one run: its ID, or the HASH of its spec.")
    if which is not None and not is_hash(which):
        named = [RunId().convert(which, None, click.get_current_context())]
    with open_app(url) as app:
        original = _find(app.store, named[0].lower())
        run_id = new_id()
        if not app.store.all(queries.replay(original=original, id=run_id)):
            raise UnknownRun(named[0])
        tell_result(app, run_id, wait, as_json=as_json)


def _find(store: Store, named: str) -> str:
    if not is_hash(named):
        return whole_id(store, named)
    found = store.first(queries.latest_by_hash(named))
    if found is None:
        raise UnknownRun(named)
    return found
