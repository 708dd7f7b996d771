# SPDX-License-Identifier: MIT
"""A PostgreSQL of the torture's own that may be stopped, killed, copied and failed over."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from byrote.assembly.clock import monotonic
from byrote.embedded.binaries import find_binaries
from byrote.embedded.cluster import ensure_cluster
from byrote.embedded.home import home_at, make_socket_dir
from byrote.embedded.postmaster import Postmaster, find_running, reap, start
from byrote.embedded.process import log_tail
from byrote.embedded.server import hold_start, runner_for, url_of
from byrote.lab.bench.stage import StageFailed

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": "5432",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "jit": "off",
    "wal_level": "replica",
    "hot_standby": "on",
    "log_min_messages": "fatal",
    "wal_receiver_timeout": "5s",
}
CARELESS: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off"}
CHANGED = ("synchronous_standby_names", "default_transaction_read_only")
"""Settings that faults change while the server runs."""
STOP_S = 60.0
BACKUP_S = 120.0


class Node:
    """One server: a data directory and, while it runs, a postmaster."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.home = home_at(path)
        self.durable = durable
        self.runner = runner_for(self.home, os.environ)
        self._socket_dir = make_socket_dir(self.home, self.runner.account, os.environ)
        self._running: Postmaster | None = None

    def create(self) -> None:
        """Make an empty cluster."""
        with hold_start(self.home) as lock:
            ensure_cluster(self.runner, durable=self.durable, lock_fd=lock.fd)

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        make_socket_dir(self.home, self.runner.account, os.environ)
        careless = {} if self.durable else CARELESS
        self._running = start(self.runner, self._socket_dir, {**SETTINGS, **careless})

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return f"{self._socket_dir}/.s.PGSQL.{SETTINGS['port']}"

    @property
    def url(self) -> str:
        """Its database, directly."""
        if self._running is None:
            raise StageFailed("The torture's server does not run.")
        return url_of(self._running)

    def signal(self, number: signal.Signals) -> None:
        """Send its postmaster a signal, and wait for its end."""
        if self._running is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._running.pid, number)
        deadline = monotonic() + STOP_S
        while find_running(self.home) is not None and monotonic() < deadline:
            reap()
            time.sleep(0.02)
        reap()

    def copy_to(self, other: "Node") -> None:
        """Make another node a streaming replica of this one."""
        account = other.runner.account
        other.home.data.mkdir(mode=0o700)
        if account is not None:
            os.chown(other.home.data, account.uid, account.gid)
        words = ["-h", str(self._socket_dir), "-p", SETTINGS["port"], "-U", "byrote", "-R"]
        words += ["-D", str(other.home.data), "-X", "stream", "--checkpoint=fast", "--no-sync"]
        child = other.runner.spawn("pg_basebackup", words, stdin=subprocess.DEVNULL)
        if _code(child):
            raise StageFailed(f"pg_basebackup failed: {log_tail(other.home.log, 0)}")

    def execute(self, *statements: str) -> None:
        """Run statements as the administrator."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def promote(self) -> None:
        """Make a replica the primary, and wait until it accepts writes."""
        # Not by pg_promote(): what the replica replays may cancel any query on it.
        wish = self.home.data / "promote"
        wish.touch()
        owner = self.home.data.stat()
        # The server may check for the file by itself, and delete it, at this very moment.
        with contextlib.suppress(FileNotFoundError):
            os.chown(wish, owner.st_uid, owner.st_gid)
        if self._running is not None:
            os.kill(self._running.pid, signal.SIGUSR1)
        deadline = monotonic() + STOP_S
        while not self.takes_writes:
            if monotonic() > deadline:
                raise StageFailed(f"The replica was not promoted in {STOP_S:g} s.")
            time.sleep(0.05)

    @property
    def takes_writes(self) -> bool:
        """Whether it answers and is not a replica."""
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                return connection.execute("select pg_is_in_recovery()").fetchone() == (False,)
        except (psycopg.Error, StageFailed):
            return False

    def reset(self) -> None:
        """Reset settings that a fault could not reset itself."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            changed = "select name from pg_settings where name = any (%s) and setting <> boot_val"
            found = connection.execute(changed, (list(CHANGED),)).fetchall()
            if not found:
                return
            # Without a replica a commit would wait for ever, and on read-only it would be refused.
            connection.execute("set synchronous_commit = local")
            connection.execute("set default_transaction_read_only = off")
            for (name,) in found:
                reset = sql.SQL("alter system reset {}").format(sql.Identifier(name))
                connection.execute(reset)
            connection.execute("select pg_reload_conf()")

    def remove(self) -> None:
        """Stop it at once and delete its data."""
        self.signal(signal.SIGQUIT)
        shutil.rmtree(self.home.path, ignore_errors=True)
        shutil.rmtree(self._socket_dir, ignore_errors=True)


class Cluster:
    """The node that is the primary now."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self._folder = folder
        self._durable = durable
        self._nodes: list[Node] = []
        self.primary = self._new_node()
        self.primary.create()
        self.primary.start()

    def _new_node(self) -> Node:
        name = f"pg{len(self._nodes) + 1}"
        self._nodes.append(Node(self._folder / name, durable=self._durable))
        return self._nodes[-1]

    def replica(self) -> Node:
        """A streaming replica of the primary, running and caught up."""
        node = self._new_node()
        self.primary.copy_to(node)
        node.start()
        self.await_streaming("async", "sync", "quorum")
        return node

    def await_streaming(self, *states: str) -> None:
        """Wait until a replica streams in one of these states."""
        ask = "select sync_state from pg_stat_replication where state = 'streaming'"
        deadline = monotonic() + 30
        with psycopg.connect(self.primary.url, autocommit=True) as connection:
            while not any(state in states for (state,) in connection.execute(ask)):
                if monotonic() > deadline:
                    raise StageFailed("The replica did not catch up in 30 s.")
                time.sleep(0.05)

    def replace(self, node: Node) -> None:
        """Make this node the primary; the old one is gone."""
        old, self.primary = self.primary, node
        old.remove()

    def mend(self) -> None:
        """Ensure that the primary runs and accepts writes, whatever state a fault left it in."""
        if find_running(self.primary.home) is None:
            self.primary.start()
        for node in self._nodes:
            if node is not self.primary and node.home.path.exists():
                node.remove()
        deadline = monotonic() + STOP_S
        while not self.primary.takes_writes:
            # Every connection may still be in use, or a recovery under way.
            if monotonic() > deadline:
                raise StageFailed("The torture's own server does not come back.")
            time.sleep(0.2)
        self.primary.reset()

    def close(self) -> None:
        """Stop everything and delete all files."""
        for node in self._nodes:
            node.remove()


def dump(url: str, path: Path) -> None:
    """Dump a whole database as SQL, for `byrote verify --dump`."""
    program = str(find_binaries(os.environ).path / "pg_dump")
    words = [program, "--dbname", url, "--file", str(path)]
    subprocess.run(words, check=False, capture_output=True)  # noqa: S603 -- our own words.


def _code(child: subprocess.Popen[bytes]) -> int:
    try:
        return child.wait(BACKUP_S)
    except subprocess.TimeoutExpired as error:
        child.kill()
        child.wait()
        raise StageFailed(f"pg_basebackup was not done after {BACKUP_S:g} s.") from error
