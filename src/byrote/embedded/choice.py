# SPDX-License-Identifier: MIT
"""Decides whether a process may start the embedded server.

It starts only where it was asked for: by a command whose purpose it is (`demo`, `up`, `pg`), by the
URL `embedded`, or by an installed `byrote[embedded]` if no database is set. PostgreSQL binaries of
the system alone are not a request: with a forgotten or misspelt setting, runs would go to a server
that no other worker uses.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from byrote.embedded.binaries import WHEELS, tried
from byrote.embedded.databases import own_url
from byrote.embedded.errors import NoDatabase
from byrote.embedded.server import Server, open_server

EMBEDDED = "embedded"
"""The URL that asks for the embedded server."""


def external(url: str | None) -> str | None:
    """Return the URL of a database elsewhere; None for `embedded` and if none is set."""
    return None if url == EMBEDDED else url


def open_chosen(url: str | None, *, environ: Mapping[str, str]) -> Server:
    """Open the embedded server for a process whose URL is `embedded` or not set.

    Raises NoDatabase if no URL is set and `byrote[embedded]` is not installed.
    """
    check_asked(url, environ)
    return open_server(environ=environ, system=url == EMBEDDED)


def open_own(url: str | None, folder: Path, *, environ: Mapping[str, str]) -> tuple[Server, str]:
    """Open the embedded server as `open_chosen` does.

    Returns it with the URL of the database of the folder's project.
    """
    server = open_chosen(url, environ=environ)
    try:
        return server, own_url(server.url, folder, environ)
    except BaseException:
        server.close()
        raise


def check_asked(url: str | None, environ: Mapping[str, str]) -> None:
    """Raise NoDatabase unless the URL is `embedded` or `byrote[embedded]` is installed."""
    if url != EMBEDDED and not any(importlib.util.find_spec(name) for name in WHEELS):
        chosen = tried(environ)[-1]
        raise NoDatabase(None if chosen.binaries is None else chosen.binaries.release)
