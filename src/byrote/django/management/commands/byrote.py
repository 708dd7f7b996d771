# SPDX-License-Identifier: MIT
"""`manage.py byrote …`: Byrote's command line on Django's database."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Passes its arguments to Byrote's own commands; `manage.py byrote --help` lists them."""

    help = "Run Byrote's commands on the project's database: worker, runs, queues, doctor and more."
    requires_system_checks: list[str] = []  # noqa: RUF012 -- as Django declares it.

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass the arguments on unparsed, without Django's own options."""
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        for option in ("--settings", "--pythonpath"):
            parser.add_argument(option)
        _, words = parser.parse_known_args(argv[2:])
        run(words, program=f"{argv[0].rpartition('/')[2]} {argv[1]}")

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """For `call_command("byrote", "worker", "--drain")`."""
        parser.add_argument("words", nargs=argparse.REMAINDER)

    def handle(self, *_args: Any, words: list[str], **_options: Any) -> None:
        """Run one command; a failure ends with its exit code, success returns."""
        run(words, program="manage.py byrote")


def run(words: list[str], *, program: str) -> None:
    """Run a command line of Byrote; raises SystemExit only if it failed."""
    from byrote.django.worker.commands import root  # noqa: PLC0415 -- apps are loaded by now.

    try:
        root.main(words, prog_name=program)
    except SystemExit as end:
        if end.code:
            raise
