# SPDX-License-Identifier: MIT
"""The root of `manage.py byrote …`: Byrote's commands on the database of one backend."""

import contextlib
import os
from collections.abc import Iterator

import click

from byrote.cli import errors
from byrote.cli.root import COMMANDS, Root
from byrote.core.ports.replies import UnknownTaskRef
from byrote.django.app import backend_of, imports
from byrote.django.worker.command import worker
from byrote.django.worker.connection import flags_of

OFFERED = (
    "worker", "runs", "dead", "queues", "workers", "schedules", "events", "top", "replay",
    "verify", "prune", "migrate", "doctor",
)  # fmt: skip
"""Commands available on a Django database."""
APP = "BYROTE_APP"


class DjangoRoot(Root):
    """The group at the top of Django's command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; `--backend` may be anywhere in it."""
        return super().parse_args(ctx, backend_first(args))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Django's worker command, or one of Byrote's commands."""
        return worker if cmd_name == "worker" else super().get_command(ctx, cmd_name)


def backend_first(words: list[str]) -> list[str]:
    """Move `--backend ALIAS` to the front, before the command."""
    end = words.index("--") if "--" in words else len(words)
    for index, word in enumerate(words[:end]):
        size = 2 if word == "--backend" else int(word.startswith("--backend="))
        if size:
            return [*words[index : index + size], *words[:index], *words[index + size :]]
    return words


@click.group(
    cls=DjangoRoot,
    lazy={name: COMMANDS[name] for name in OFFERED},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: python manage.py byrote worker --drain",
)
@click.option("--backend", default="default", metavar="ALIAS", help="The backend in TASKS.")
@click.pass_context
def root(ctx: click.Context, backend: str) -> None:
    """Run Byrote's commands on the database of the backend ALIAS in TASKS."""
    errors.migrating = "python manage.py migrate"
    if ctx.invoked_subcommand == "worker":
        ctx.default_map = {"worker": {"backend": backend}}
        return
    ctx.with_resource(database_of(backend))

    def known(unknown: UnknownTaskRef) -> bool:
        return imports(backend_of(backend), unknown)

    # For replays: tasks outside of a `tasks` module are imported when a run names them.
    ctx.obj = known


@contextlib.contextmanager
def database_of(alias: str) -> Iterator[None]:
    """Set environment variables with which Byrote's commands find a backend's database and app."""
    flags = flags_of(backend_of(alias))
    variables = {f"BYROTE_{name.upper()}": str(value) for name, value in flags.items()}
    variables[APP] = f"byrote.django.app:{alias}"
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
