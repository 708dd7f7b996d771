# SPDX-License-Identifier: MIT
"""The root of `manage.py byrote …`: the plain commands, on the database of one backend."""

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
"""Commands that make sense on a Django database."""
APP = "BYROTE_APP"


class DjangoRoot(Root):
    """The group at the top of Django's command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; `--backend` may stand anywhere in it."""
        return super().parse_args(ctx, backend_first(args))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Our own worker, or a plain command."""
        return worker if cmd_name == "worker" else super().get_command(ctx, cmd_name)


def backend_first(words: list[str]) -> list[str]:
    """The same words with `--backend ALIAS` in front, before the command."""
    end = words.index("--") if "--" in words else len(words)
    for place, word in enumerate(words[:end]):
        size = 2 if word == "--backend" else int(word.startswith("--backend="))
        if size:
            return [*words[place : place + size], *words[:place], *words[place + size :]]
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
    """Byrote on the database of a Django project: the backend ALIAS in TASKS says which one."""
    errors.migrating = "python manage.py migrate"
    if ctx.invoked_subcommand == "worker":
        ctx.default_map = {"worker": {"backend": backend}}
        return
    ctx.with_resource(database_of(backend))

    def known(stranger: UnknownTaskRef) -> bool:
        return imports(backend_of(backend), stranger)

    # For replays: tasks that are not in a `tasks` module are known when they are met.
    ctx.obj = known


@contextlib.contextmanager
def database_of(alias: str) -> Iterator[None]:
    """Let plain commands find the database of a backend, and replays its tasks."""
    flags = flags_of(backend_of(alias))
    wanted = {f"BYROTE_{name.upper()}": str(value) for name, value in flags.items()}
    wanted[APP] = f"byrote.django.app:{alias}"
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
