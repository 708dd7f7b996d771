# SPDX-License-Identifier: MIT
"""Records that a running server is to stay up after its last user has left.

The note names one postmaster by pid and start time: it does not apply to the next server of the
same home, so a note that survived a crash or a reboot has no effect.
"""

import json
import os
from dataclasses import dataclass

from byrote.embedded.home import Home
from byrote.embedded.postmaster import Postmaster


@dataclass(frozen=True, slots=True)
class KeepNote:
    """The note about one server."""

    password: str | None
    """The password for TCP clients, if the server listens on TCP."""


def write_kept(home: Home, running: Postmaster, password: str | None) -> None:
    """Keep this server up until it is stopped explicitly."""
    note = {"pid": running.pid, "started": running.started, "password": password}
    home.kept.unlink(missing_ok=True)
    with open(home.kept, "x", opener=_private) as file:
        json.dump(note, file)


def read_kept(home: Home, running: Postmaster) -> KeepNote | None:
    """The note about this server process, if it is to be kept."""
    try:
        note = json.loads(home.kept.read_text())
    except (FileNotFoundError, json.JSONDecodeError):  # A note that is half written has no effect.
        return None
    if (note["pid"], note["started"]) != (running.pid, running.started):
        return None
    return KeepNote(note["password"])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
