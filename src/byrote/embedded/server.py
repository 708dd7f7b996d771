# SPDX-License-Identifier: MIT
"""The embedded server as its users see it: open it, use its URL, close it.

Many processes may open the same home at once: one starts the server, the others join, and the
last one out stops it. A server whose last user was killed stays up; the next user adopts it and
stops it on leaving. `locks.py` explains how users are counted, and the effect of fork().
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self
from urllib.parse import quote

from byrote.core.errors import UnsupportedSystem
from byrote.embedded.account import server_account
from byrote.embedded.binaries import Binaries, find_binaries
from byrote.embedded.binaries_copy import within_reach
from byrote.embedded.cluster import DATABASE, USER, ensure_cluster
from byrote.embedded.errors import HomeUnusable, ServerInUse
from byrote.embedded.home import Home, default_home, home_at, make_socket_dir
from byrote.embedded.keep_running import read_kept, write_kept
from byrote.embedded.locks import Lock, hold, share, try_hold
from byrote.embedded.postmaster import Postmaster, await_ready, find_running, start, stop
from byrote.embedded.process import Runner
from byrote.system.platforms import is_windows

__all__ = ["Server", "default_home", "open_server"]

_SETTINGS: Final = MappingProxyType(
    {
        "listen_addresses": "",
        "port": "5432",
        "shared_buffers": "128MB",
        "max_connections": "200",
        "jit": "off",
    }
)
_CARELESS: Final = MappingProxyType(
    {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
)
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Server:
    """A running server that this process uses until it closes it; a context manager."""

    def __init__(self, home: Home, binaries: Binaries, running: Postmaster, use: Lock) -> None:
        self.url = url_of(running)
        self.pid = running.pid
        self.data = home.data
        self.log = home.log
        self.socket_dir = running.socket_dir
        self.binaries = binaries
        self._home = home
        self._use = use
        self._owner = os.getpid()
        self._closed = False

    def keep(self) -> None:
        """Leave the server up when its last user leaves, until `byrote pg stop`."""
        with hold_start(self._home):
            running = find_running(self._home)
            if running and read_kept(self._home, running) is None:
                write_kept(self._home, running, password=None)

    def close(self) -> None:
        """Leave; the last user to leave stops the server. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._owner:
            # A forked child only closes its copy; the process that opened the server leaves.
            self._use.close()
        else:
            _leave(self._home, self._use)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def open_server(
    home: Path | None = None,
    *,
    environ: Mapping[str, str],
    settings: Mapping[str, str] = _NOTHING,
    durable: bool = True,
    system: bool = True,
) -> Server:
    """Join the server of this home, or start it, making its cluster if there is none.

    `settings` are PostgreSQL's own and count only for a server this call starts. `durable=False`
    is for tests: a crash of the machine may then lose the cluster. Without `system`, it does not
    start from the binaries of the system's packages. Raises UnsupportedSystem on Windows.
    """
    if is_windows():
        raise UnsupportedSystem("The embedded server runs")
    where = home_at(home if home is not None else default_home(environ))
    runner = runner_for(where, environ, system=system)
    with hold_start(where) as lock:
        use = share(where.use_lock)
        try:
            running = await_ready(where)
            if running is None:
                running = start_here(runner, lock, settings=settings, durable=durable)
            elif durable:
                _refuse_careless(where, running)
        except BaseException:
            use.close()
            raise
    return Server(where, runner.binaries, running, use)


def runner_for(home: Home, environ: Mapping[str, str], *, system: bool = True) -> Runner:
    """Find the binaries and the user for this home, and make its directory."""
    account = server_account(home.path, home.data)
    home.prepare(account)
    binaries = within_reach(find_binaries(environ, system=system), account)
    return Runner(home, binaries, account, environ)


def start_here(
    runner: Runner, lock: Lock, *, settings: Mapping[str, str], durable: bool
) -> Postmaster:
    """Start the server that is known not to run, under the start lock."""
    ensure_cluster(runner, durable=durable, lock_fd=lock.fd)
    socket_dir = make_socket_dir(runner.home, runner.account, runner.environ)
    careless = _NOTHING if durable else _CARELESS
    return start(runner, socket_dir, {**_SETTINGS, **careless, **settings})


def url_of(running: Postmaster) -> str:
    """The URL of a running server, over its socket."""
    # The port is part of the socket's name; given here, a PGPORT of the client cannot change it.
    return (
        f"postgresql://{USER}@/{DATABASE}"
        f"?host={quote(str(running.socket_dir), safe='/')}&port={running.port}"
    )


def hold_start(home: Home) -> Lock:
    """Wait for the start lock of this home."""
    try:
        return hold(home.start_lock)
    except PermissionError as error:
        raise HomeUnusable(home.path, "it belongs to another user") from error


def _refuse_careless(home: Home, running: Postmaster) -> None:
    words = (home.data / "postmaster.opts").read_text()
    if '"fsync=off"' in words:
        raise ServerInUse(
            home.path,
            f"it was started without fsync (pid {running.pid}) and would lose what you give it; "
            "stop it with `byrote pg stop`, or use another BYROTE_PG_HOME",
        )


def _leave(home: Home, use: Lock) -> None:
    with hold_start(home):
        # Close first and try with a new file: the old one may be shared with a forked child.
        use.close()
        alone = try_hold(home.use_lock)
        if alone is None:
            return
        with alone:
            running = find_running(home)
            if running and read_kept(home, running) is None:
                stop(home, running)
