# SPDX-License-Identifier: MIT
"""Sets the demo up on a server of its own, or on yours, and cleans up after it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from byrote.assembly.clock import monotonic
from byrote.bench.stage import own_folder
from byrote.demo.compiled import compile_ahead, shared_code

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from byrote.demo.screen import Paint, Screen
    from byrote.demo.story import Story


class Ended(NamedTuple):
    """The story, and where its data lies if it was kept."""

    story: Story
    home: Path | None
    """The home of the server whose data was kept."""


def run_demo(*, url: str | None, keep: bool, silent: bool, paint: Paint) -> Ended:
    """Play the demo; whatever happens, nothing is left running."""
    began = monotonic()
    with own_folder(keep=keep) as folder, shared_code(folder):
        # Imported here: what they import is compiled once for all processes of the demo.
        from byrote.demo.screen import Screen  # noqa: PLC0415
        from byrote.demo.story import Play  # noqa: PLC0415

        screen = Screen(silent=silent, paint=paint)
        with _server(url, folder, screen, keep=keep) as found:
            play = Play(found, folder)
            story = play.perform(began=began, watch=screen.watch, tell=screen.tell)
        return Ended(story, folder / "pg" if keep and url is None else None)


@contextmanager
def _server(url: str | None, folder: Path, screen: Screen, *, keep: bool) -> Iterator[str]:
    compile_ahead()
    if url is not None:
        screen.tell("Using the database you gave; the demo's runs stay in it.")
        yield url
        return
    # Imported here: a given URL needs no embedded server.
    from byrote.embedded.server import open_server  # noqa: PLC0415

    screen.tell("Starting a PostgreSQL server of its own.")
    # What is thrown away need not survive a crash of the machine.
    with open_server(folder / "pg", environ=os.environ, durable=keep) as server:
        yield server.url
