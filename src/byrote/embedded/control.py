# SPDX-License-Identifier: MIT
"""Commands for an embedded server from outside: status, stop, remove, open to TCP."""

import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from byrote.embedded.cluster import DATABASE, USER, ensure_cluster, run_single
from byrote.embedded.errors import HomeUnusable, NoServer, ServerInUse
from byrote.embedded.home import Home, home_at
from byrote.embedded.keep_running import read_kept, write_kept
from byrote.embedded.locks import Lock, try_hold
from byrote.embedded.postmaster import Postmaster, await_ready, find_running
from byrote.embedded.postmaster import stop as stop_postmaster
from byrote.embedded.server import hold_start, runner_for, start_here, url_of

type ServerState = Literal["running", "busy", "stopped", "absent"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """Status of the server of one home."""

    home: Path
    state: ServerState
    """`busy` is starting or stopping; `absent` means that none was ever created here."""
    log: Path
    version: str | None
    """The major version of its data."""
    pid: int | None = None
    url: str | None = None
    used: bool | None = None
    """Whether any process uses it; unknown while it is busy."""
    kept: bool = False
    tcp_port: int | None = None


def status(path: Path) -> ServerStatus:
    """Read the status of the server of this home without waiting and without changing anything."""
    home = home_at(path)
    version = _version(home)
    if not home.start_lock.exists():
        return ServerStatus(
            home.path, "absent" if version is None else "stopped", home.log, version
        )
    lock = _try_start(home)
    if lock is None:
        return ServerStatus(home.path, "busy", home.log, version)
    with lock:
        running = find_running(home)
        if running is None:
            return ServerStatus(
                home.path, "absent" if version is None else "stopped", home.log, version
            )
        return ServerStatus(
            home.path,
            "running" if running.ready else "busy",
            home.log,
            version,
            pid=running.pid,
            url=url_of(running),
            used=_used(home),
            kept=read_kept(home, running) is not None,
            tcp_port=running.port if running.listens else None,
        )


def stop(path: Path, *, force: bool = False) -> bool:
    """Stop the server; returns whether it ran. Refuses while others use it, unless forced."""
    home = _existing(path)
    with hold_start(home):
        running = find_running(home)
        if running is None:
            return False
        if not force and _used(home):
            raise ServerInUse(home.path, "stop them first, or use --force to cut them off")
        stop_postmaster(home, running)
        home.kept.unlink(missing_ok=True)
        return True


def destroy(path: Path) -> None:
    """Stop the server and remove its data for good; refuses while others use it."""
    home = _existing(path)
    with hold_start(home):
        alone = try_hold(home.use_lock)
        if alone is None:
            raise ServerInUse(home.path, "stop them first")
        with alone:
            if running := find_running(home):
                stop_postmaster(home, running)
            _remove(home)


def tcp_url(path: Path, *, environ: Mapping[str, str], password: str, start: bool) -> str:
    """Open the server to TCP on 127.0.0.1, keep it running, and return the URL with its password.

    Listening takes a restart, so a server that others use is refused. A server that listens already
    is not changed: its URL is returned with its current password. It listens until it stops.
    """
    home = home_at(path)
    if not start and not (home.start_lock.exists() and home.data.exists()):
        raise NoServer(home.path, "not there yet")
    runner = runner_for(home, environ)
    with hold_start(home) as lock:
        running = await_ready(home)
        if running is None and not start:
            raise NoServer(home.path, "not running")
        known = _tcp_url_of(home, running) if running else None
        if known is not None:
            return known
        with _alone(home):
            if running:
                stop_postmaster(home, running)
            ensure_cluster(runner, durable=True, lock_fd=lock.fd)
            statement = f"ALTER ROLE {USER} PASSWORD '{_checked(password)}';"
            run_single(runner, home.data, statement, lock_fd=lock.fd)
            settings = {"listen_addresses": "127.0.0.1", "port": str(free_port())}
            running = start_here(runner, lock, settings=settings, durable=True)
            write_kept(home, running, password)
            return _tcp_url(running, password)


def _tcp_url_of(home: Home, running: Postmaster) -> str | None:
    kept = read_kept(home, running)
    if kept is None or kept.password is None or not running.listens:
        return None
    return _tcp_url(running, kept.password)


def _tcp_url(running: Postmaster, password: str) -> str:
    return f"postgresql://{USER}:{password}@127.0.0.1:{running.port}/{DATABASE}"


def _checked(password: str) -> str:
    if not password.replace("-", "").replace("_", "").isalnum():
        raise ValueError("The password is put into SQL and a URL: letters, digits, - and _ only.")
    return password


def free_port() -> int:
    """A TCP port of the loopback address that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _alone(home: Home) -> Lock:
    alone = try_hold(home.use_lock)
    if alone is None:
        raise ServerInUse(
            home.path, "TCP needs a restart: stop them, then `byrote pg url --tcp --start`"
        )
    return alone


def _used(home: Home) -> bool:
    # Only under the start lock: otherwise a process that leaves would see a false user.
    alone = try_hold(home.use_lock)
    if alone is None:
        return True
    alone.close()
    return False


def _existing(path: Path) -> Home:
    home = home_at(path)
    if not (home.data.exists() or home.data_new.exists()):
        raise NoServer(home.path, "not there yet")
    return home


def _try_start(home: Home) -> Lock | None:
    try:
        return try_hold(home.start_lock)
    except PermissionError as error:
        raise HomeUnusable(home.path, "it belongs to another user") from error


def _version(home: Home) -> str | None:
    try:
        return (home.data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise HomeUnusable(home.path, "it belongs to another user") from error


def _remove(home: Home) -> None:
    """Remove the files that Byrote created, by name: the directory may hold other files."""
    shutil.rmtree(home.data_new, ignore_errors=True)
    if home.data.exists():
        # Renamed first: a removal that is killed half way must not look like a cluster.
        home.data.rename(home.data_new)
        shutil.rmtree(home.data_new)
    older = home.log.with_name(f"{home.log.name}.1")
    for path in (home.log, older, home.kept, home.use_lock, home.start_lock):
        path.unlink(missing_ok=True)
    if not any(home.path.iterdir()):
        home.path.rmdir()
