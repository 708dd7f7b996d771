# SPDX-License-Identifier: MIT
"""`byrote replay`: enqueues the spec of an earlier run again, or verifies its result."""

from datetime import timedelta
from typing import Any

import click

from byrote.assembly.reenqueue import enqueue_again
from byrote.cli.database import open_app, whole_id
from byrote.cli.options import (
    Label,
    MomentParam,
    RunId,
    SpecHash,
    database_options,
    is_hash,
    wait_option,
)
from byrote.cli.output.accepted import print_result
from byrote.core.errors import RunNotFound
from byrote.store import queries
from byrote.store.runners.sync import Store


@click.command(
    epilog="""\b
Examples: byrote replay 01932c4e-8d5b-7a90-b1c2-3d4e5f607182 --wait
          byrote replay 01932c4e-8d5b-7a90 --verify --app shop.tasks:app
          byrote replay --task charge --last 500 --verify --jobs 4 --junit replay.xml"""
)
@click.argument("which", metavar="[ID|HASH]", required=False)
# The names of these in scripts that are older than the argument.
@click.option("--requeue-id", type=RunId(), hidden=True)
@click.option("--requeue-hash", type=SpecHash(), hidden=True)
@database_options
@wait_option
@click.option("--verify", is_flag=True, help="Execute it here, in a shadow run, and compare.")
@click.option(
    "--app", metavar="MODULE:APP", help="The app whose code is used; default: the setting `app`."
)
@click.option("--live-steps", is_flag=True, help="Execute steps again, with their side effects.")
@click.option("--ignore", multiple=True, metavar="PATH", help="Part of the result to ignore: $.at")
@click.option("--task", metavar="NAME", help="Verify the newest runs of this task.")
@click.option("--last", type=click.IntRange(1, 10_000), help="How many; default: 500.")
@click.option("--since", type=MomentParam(), help="Only what ended since: 24h, or an ISO time.")
@click.option("--failed", is_flag=True, help="Only runs that failed.")
@click.option("--version", type=click.IntRange(1), help="Only runs of this version of the task.")
@click.option("--label", multiple=True, type=Label(), help="Only runs with this label.")
@click.option(
    "--allow-not-replayable",
    is_flag=True,
    help="Exit with 0 if nothing differs and at least one run was compared.",
)
@click.option("--hide-values", is_flag=True, help="Name what differs without the values.")
@click.option("--jobs", type=click.IntRange(1, 1000), help="How many at once; default: 1.")
@click.option(
    "--junit", type=click.File("w", encoding="utf-8", lazy=False), help="Write JUnit XML there."
)
def replay(
    which: str | None,
    *,
    requeue_id: str | None,
    requeue_hash: str | None,
    url: str | None,
    as_json: bool,
    wait: timedelta | None,
    verify: bool,
    task: str | None,
    **options: Any,
) -> None:
    """Enqueue the spec of an earlier run again as a new run, and print the new id.

    HASH is the hash of a spec: its newest run is taken, with --verify the newest that has ended.
    The new run refers to the run it repeats; the earlier run does not change.

    With --verify nothing is enqueued for others: the code of --app executes the spec here, in a
    shadow run, and the outcome is compared with the recorded one. Steps, sleeps and signals are
    answered from the record and not repeated; code outside of steps is executed again. Of a run
    that failed, the error's class and message are compared.

    Prints `same`, `differs` and where, or `not replayable` and why. Exits with 3 if anything
    differs, else with 1 if anything could not be replayed, with 4 if no run matches.
    Values of results are printed, and written to --junit and --json, unless --hide-values is given.
    """
    named = [word for word in (which, requeue_id, requeue_hash) if word is not None]
    if len(named) + (task is not None) != 1:
        raise click.UsageError("Give one run, its ID or the HASH of its spec, or a --task.")
    if which is not None and not is_hash(which):
        named = [RunId().convert(which, None, click.get_current_context())]
    _check_options(task, wait, options, verify=verify)
    if verify:
        # The verifying worker is slow to import, and most replays do not verify.
        from byrote.cli.output.replay_verdicts import verify_runs  # noqa: PLC0415

        which = named[0].lower() if named else None
        how = {name: options.pop(name) for name in ("live_steps", "ignore", "jobs", "hide_values")}
        verify_runs(url, which, task=task, as_json=as_json, how=how, **options)
        return
    with open_app(url) as app:
        run_id = enqueue_again(app.store, _find(app.store, named[0].lower()))
        print_result(app, run_id, wait, as_json=as_json)


def _check_options(
    task: str | None, wait: timedelta | None, options: dict[str, Any], *, verify: bool
) -> None:
    """Refuse options that would have no effect."""
    given = [name for name, value in options.items() if value not in (None, False, ())]
    if not verify and (given or task is not None):
        option = (given or ["task"])[0].replace("_", "-")
        raise click.UsageError(f"--{option} goes with --verify.")
    if verify and wait is not None:
        raise click.UsageError("--verify waits by itself; leave --wait out.")
    several = [name for name in ("last", "since", "failed", "version", "label") if name in given]
    if task is None and several:
        raise click.UsageError(f"--{several[0]} chooses among the runs of a --task.")


def _find(store: Store, named: str) -> str:
    if not is_hash(named):
        return whole_id(store, named)
    found = store.first(queries.latest_by_hash(named))
    if found is None:
        raise RunNotFound(named)
    return found
