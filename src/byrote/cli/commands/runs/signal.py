# SPDX-License-Identifier: MIT
"""`byrote runs signal`: sends a signal that a run waits for."""

import click

from byrote.assembly.identity import new_id
from byrote.cli.database import open_store, whole_id
from byrote.cli.errors import FAILED
from byrote.cli.options import RunId, database_options
from byrote.cli.output.tables import print_json
from byrote.core.errors import RunNotFound
from byrote.core.json.codec import check_text
from byrote.executors.runtime.steps.call import check_name
from byrote.store import queries

EXAMPLE = """byrote runs signal 01932c4e-8d5b-7a90-b1c2-3d4e5f607182 paid '{"cents": 5}'"""


@click.command(epilog=f"Example: {EXAMPLE}")
@click.argument("begun", metavar="ID", type=RunId())
@click.argument("event")
@click.argument("payload", metavar="[JSON]", default="null")
@database_options
def signal(begun: str, event: str, payload: str, *, url: str | None, as_json: bool) -> None:
    """Send a run a signal that it waits for with ctx.wait_for, now or later.

    JSON is any value; the task receives it. Exits with 4 if the run does not exist, with 1 if it
    had finished already.
    """
    check_name(event)
    packed = check_text(payload)
    with open_store(url) as store:
        run_id = whole_id(store, begun)
        sent = bool(store.all(queries.signal(run_id, new_id(), event, packed)))
        run = store.first(queries.run(run_id))
    if run is None:
        raise RunNotFound(begun)
    message = "signalled" if sent else "unchanged: it had finished already"
    if as_json:
        print_json({"id": run_id, "done": sent, "status": run.status, "message": message})
    else:
        click.echo(f"{run_id}  {run.status}  {message}")
    if not sent:
        click.get_current_context().exit(FAILED)
