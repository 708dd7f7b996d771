# SPDX-License-Identifier: MIT
"""The root of all commands, and the one place where errors become messages and exit codes."""

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from byrote.cli.lazy import LazyGroup
from byrote.cli.main import installed_version

COMMANDS = {
    "demo": (
        "processes.demo",
        "See Byrote work: a server, a worker and a few hundred runs, in seconds.",
    ),
    "worker": ("processes.worker", "Execute runs for an app until told to stop."),
    "serve": ("processes.serve", "Serve the queue over HTTP."),
    "up": ("processes.up", "Run everything on one machine: PostgreSQL, the service and a worker."),
    "enqueue": ("runs.enqueue", "Accept one run of a task, or one for each line of a file."),
    "runs": ("runs.listing", "List, show, cancel and retry runs."),
    "replay": ("runs.replay", "Enqueue the spec of an earlier run again."),
    "queues": ("operations.queues", "List queues, pause and resume them."),
    "schedules": ("operations.schedules", "List, add, pause and remove periodic tasks."),
    "dead": ("runs.dead", "List, show, requeue and delete dead letters."),
    "workers": ("operations.workers", "List workers."),
    "top": ("operations.top", "Watch queues, tasks and workers live."),
    "token": ("operations.token", "Create, list, rotate and revoke tokens of the service."),
    "roles": ("operations.roles", "Print SQL for database roles with least privilege."),
    "events": ("operations.events", "Show what happens, as it happens."),
    "prune": ("operations.prune", "Forget now what has been kept long enough."),
    "migrate": ("operations.migrate", "Bring the database's schema up to date, or check it."),
    "verify": ("checks.verify", "Check every run against the event log and the rules."),
    "doctor": ("checks.doctor", "Check the set-up and say what to do about it."),
    "config": ("checks.config", "Show the settings and where each came from."),
    "pg": ("operations.pg", "Look after the embedded PostgreSQL server."),
    "torture": ("checks.torture", "Break everything by a seed and check that every promise held."),
    "bench": ("checks.bench", "Measure enqueueing, draining and latency on this machine."),
}


class Root(LazyGroup):
    """The group at the top: whatever goes wrong below is told here."""

    def main(  # type: ignore[override]  # The overloads of click say which mode returns; we never do.
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        """Run one command line and end with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            code = super().main(words, prog_name, **extra)
        except _expected() as error:
            from byrote.cli.errors import tell  # noqa: PLC0415 -- `--help` stays fast.

            code = tell(error, as_json="--json" in words)
        sys.exit(code if isinstance(code, int) else 0)


def _expected() -> tuple[type[Exception], ...]:
    # Asked only once something was raised, so that a command that imports little stays quick.
    from byrote.cli.errors import expected  # noqa: PLC0415 -- the same.

    return expected()


@click.group(
    cls=Root,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: byrote demo",
)
@click.version_option(installed_version(), message="byrote %(version)s")
def root() -> None:
    """Byrote: a task queue and worker on PostgreSQL.

    Commands that need a database take it from --url, else BYROTE_DATABASE_URL or DATABASE_URL, else
    byrote.toml or pyproject.toml; when nothing is set they use an embedded server of your own.

    Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 a check failed, 4 not found, 75 the database did
    not answer, 130 and 143 ended by a signal.
    """
