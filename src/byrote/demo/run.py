# SPDX-License-Identifier: MIT
"""Sets the demo up on a server of its own, or on yours, and cleans up after it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from byrote.assembly.clock import monotonic
from byrote.bench.stage import own_folder
from byrote.demo.screen import Screen
from byrote.demo.story import Play, Story


class Ended(msgspec.Struct, frozen=True):
    """The story, and where its data lies if it was kept."""

    story: Story
    home: Path | None
    """The home of the server whose data was kept."""


def run_demo(*, url: str | None, keep: bool, screen: Screen) -> Ended:
    """Play the demo; whatever happens, nothing is left running."""
    began = monotonic()
    with own_folder(keep=keep) as folder, _server(url, folder, screen) as found:
        play = Play(found, folder)
        story = play.perform(began=began, watch=screen.watch, tell=screen.tell)
        home = folder / "pg" if keep and url is None else None
    return Ended(story, home)


@contextmanager
def _server(url: str | None, folder: Path, screen: Screen) -> Iterator[str]:
    if url is not None:
        screen.tell("Using the database you gave; the demo's runs stay in it.")
        yield url
        return
    # Imported here: a given URL needs no embedded server.
    from byrote.embedded.server import open_server  # noqa: PLC0415

    screen.tell("Starting a PostgreSQL server of its own.")
    with open_server(folder / "pg", environ=os.environ) as server:
        yield server.url
