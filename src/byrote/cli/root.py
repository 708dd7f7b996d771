# SPDX-License-Identifier: MIT
"""The root command; turns errors into messages and exit codes."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from byrote.cli.lazy import HELP, LazyGroup
from byrote.cli.main import installed_version

COMMANDS = {
    "demo": (
        "processes.demo",
        "See Byrote work: a server, a worker and a few hundred runs, in seconds.",
    ),
    "worker": ("processes.worker", "Execute runs for an app until stopped."),
    "serve": ("processes.serve", "Serve the queue over HTTP."),
    "up": ("processes.up", "Run everything on one machine: PostgreSQL, the service and a worker."),
    "enqueue": ("runs.enqueue", "Accept one run of a task, or one for each line of a file."),
    "runs": ("runs.listing", "List, show, cancel and retry runs."),
    "replay": ("runs.replay", "Enqueue the spec of an earlier run again."),
    "queues": ("operations.queues", "List, pause, resume, purge and configure queues."),
    "schedules": ("operations.schedules", "List, add, pause and remove periodic tasks."),
    "dead": ("runs.dead", "List, show, requeue and delete dead letters."),
    "workers": ("operations.workers", "List workers."),
    "tasks": ("operations.tasks", "List the tasks of an app."),
    "top": ("operations.top", "Watch queues, tasks and workers live."),
    "token": ("operations.token", "Create, list, rotate and revoke tokens of the service."),
    "roles": ("operations.roles", "Print SQL for database roles with least privilege."),
    "events": ("operations.events", "Show events of the log, and follow it."),
    "prune": ("operations.prune", "Delete now what is past its retention time."),
    "migrate": ("operations.migrate", "Bring the database's schema up to date, or check it."),
    "verify": ("checks.verify", "Check every run against the event log and the rules."),
    "doctor": ("checks.doctor", "Check the set-up and advise on problems."),
    "config": ("checks.config", "Show the settings and where each came from."),
    "completion": ("operations.completion", "Print the completion script of a shell."),
    "pg": ("operations.pg", "Manage the embedded PostgreSQL server."),
    "torture": ("checks.torture", "Inject faults by a seed and check every guarantee."),
    "bench": ("checks.bench", "Measure enqueueing, draining and latency on this machine."),
}
REPORTING = frozenset({"config", "doctor"})
"""Commands that report unknown variables after everything else they report."""


class Root(LazyGroup):
    """The top-level group; reports the errors of all commands."""

    def main(  # type: ignore[override]  # Click's overloads distinguish modes that return; this one never does.
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        """Run one command line and end with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            _check_variables(words)
            code = super().main(words, prog_name, **extra)
        except _expected() as error:
            from byrote.cli.errors import report_error  # noqa: PLC0415 -- `--help` stays fast.

            code = report_error(error, as_json="--json" in words)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            code = _report_full_disk()
        sys.exit(code if isinstance(code, int) else 0)


def _report_full_disk() -> int:
    """Report that the disk is full, and return the exit code."""
    # Python writes its buffer again at exit, and would fail again with a traceback.
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 -- a device, not a path of ours.
        os.dup2(nowhere.fileno(), 1)
    click.echo("byrote: No space left on the device that it writes to.", err=True)
    return 1


def _check_variables(words: Sequence[str]) -> None:
    """Raise BadOption for a variable `BYROTE_…` that nothing reads, unless help is wanted."""
    command = next((word for word in words if word in COMMANDS), None)
    if command is None or command in REPORTING or not HELP.isdisjoint(words):
        return
    if any(name.startswith("BYROTE_") for name in os.environ):
        from byrote.assembly.settings import check_variables  # noqa: PLC0415 -- starts fast.

        check_variables(os.environ)


def _expected() -> tuple[type[Exception], ...]:
    # Called only after an exception, so that a command with few imports starts fast.
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
    byrote.toml or pyproject.toml. The URL `embedded` starts a server for development, which is
    also the default if byrote[embedded] is installed.

    Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 a check failed, 4 not found, 5 drained but runs
    were left, 75 the database did not answer, 130 and 143 ended by a signal.
    """
