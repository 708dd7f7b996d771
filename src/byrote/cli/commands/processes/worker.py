# SPDX-License-Identifier: MIT
"""`byrote worker`: executes runs for an app until it is stopped."""

from typing import Any

import click

from byrote.cli.lazy import import_for
from byrote.cli.options import url_option

COUNT = click.IntRange(min=1)


@click.command(
    epilog="Example: byrote worker shop.tasks:app --queues mail=3,default --hands 4",
)
@click.argument("app", metavar="MODULE:APP")
@url_option
@click.option(
    "-Q",
    "--queues",
    metavar="A,B=3",
    help="Queues to serve, with weights; default: those of its tasks.",
)
@click.option("-c", "--concurrency", type=COUNT, help="Async tasks at once, over all hands.")
@click.option("--hands", type=COUNT, help="Child processes; default: one per core.")
@click.option("--threads", type=COUNT, help="Sync tasks at once in each hand.")
@click.option("--drain", is_flag=True, help="Exit when no run is left to execute.")
@click.option(
    "--reload/--no-reload", default=False, help="Restart when Python files change; for development."
)
@click.option("--max-tasks", type=COUNT, help="Replace a hand after this many runs.")
@click.option(
    "--max-rss", metavar="SIZE", help="Replace a hand whose memory exceeds this, e.g. 512MB."
)
@click.option("--lease", metavar="DURATION", help="Duration of a lease between renewals.")
@click.option("--grace", metavar="DURATION", help="How long a stop waits for running attempts.")
@click.option(
    "--poll", "poll_interval", metavar="DURATION", help="Poll interval without a notification."
)
@click.option(
    "--executor",
    type=click.Choice(["hand", "inline", "command", "container"]),
    help="Where tasks execute.",
)
@click.option(
    "--payload-mode",
    type=click.Choice(["stdin", "file", "argv"]),
    help="Default way to pass the spec to commands.",
)
@click.option(
    "--claims",
    type=click.Choice(["durable", "fast"]),
    help="fast: claims do not wait for the disk.",
)
@click.option("--no-listen", is_flag=True, help="Only poll; for poolers that cannot LISTEN.")
@click.option(
    "--worker-id",
    metavar="ID",
    help="Name of the worker, for one process at a time; default: unique per start.",
)
@click.option(
    "--log-format", type=click.Choice(["auto", "text", "json"]), help="Format of the log."
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
def worker(
    app: str, *, url: str | None, drain: bool, reload: bool, no_listen: bool, **flags: Any
) -> None:
    """Execute runs for the app at MODULE:APP until stopped.

    SIGTERM or Ctrl-C stops claiming, waits up to --grace for running attempts, and returns the
    others to the queue uncharged. A second one returns everything at once. SIGUSR1 prints the
    stack of every thread. The log goes to standard error: text on a terminal, JSON otherwise.

    A hand executes sync or async tasks, not both at a time: a timeout or cancel of a sync task
    kills its hand. If one kind uses all --hands, the worker starts one hand more for the other.

    With --drain it exits when its queues have no run left that it can execute. It first
    reclaims runs whose lease has expired; it does not wait for runs that other workers execute.
    It exits with 5 if it left runs of tasks or versions that it does not know, or of paused queues.

    With --reload it is stopped in the same way and started again when a Python file of the current
    folder, of PYTHONPATH or of the app's package changes. Code that cannot be imported is reported,
    and the next change tried.

    Other settings come from BYROTE_* variables, byrote.toml or pyproject.toml; see
    `byrote config show --origin`.
    """
    # Imported here: with the driver and the executors, `--help` took 0.42 s instead of 0.08 s.
    process = import_for("worker", "byrote.cli.support.worker_process")
    flags |= {"database_url": url, "listen": False if no_listen else None}
    if reload:
        process.run_fresh_worker(app, flags, drain=drain)
    else:
        process.run_worker(app, flags, drain=drain)
