# SPDX-License-Identifier: MIT
"""Sets the demo up on an embedded server or on the given database, and cleans up after it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from byrote.assembly.clock import monotonic
from byrote.demo.compiled import compiling
from byrote.demo.screen import Paint, Screen
from byrote.lab.bench.stage import own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from byrote.demo.story import Story

PATIENCE_S = 10.0


class DemoResult(NamedTuple):
    """The story, and the folder of its data if it was kept."""

    story: Story
    home: Path | None
    """The home of the server whose data was kept."""


def run_demo(*, url: str | None, keep: bool, silent: bool, paint: Paint) -> DemoResult:
    """Play the demo; whatever happens, nothing is left running."""
    began = monotonic()
    screen = Screen(silent=silent, paint=paint)
    with own_folder(keep=keep) as folder, compiling(folder) as compiler:
        # Takes long to import, and the server takes long to start: both at once.
        threading.Thread(target=import_module, args=("byrote.demo.story",), daemon=True).start()
        with _server(url, folder, screen, keep=keep) as found:
            from byrote.demo.story import Play  # noqa: PLC0415 -- see above.

            with contextlib.suppress(subprocess.TimeoutExpired):
                compiler.wait(PATIENCE_S)
            play = Play(found, folder)
            story = play.perform(began=began, watch=screen.watch, announce=screen.announce)
        return DemoResult(story, folder / "pg" if keep and url is None else None)


@contextlib.contextmanager
def _server(url: str | None, folder: Path, screen: Screen, *, keep: bool) -> Iterator[str]:
    if url is not None:
        screen.announce("Using the given database; the demo's runs stay in it.")
        yield url
        return
    # Imported here: a given URL needs no embedded server.
    from byrote.embedded.server import open_server  # noqa: PLC0415

    screen.announce("Starting an embedded PostgreSQL server.")
    # Data that is deleted afterwards need not survive a crash of the machine.
    with open_server(folder / "pg", environ=os.environ, durable=keep) as server:
        yield server.url
