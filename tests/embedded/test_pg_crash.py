# SPDX-License-Identifier: MIT
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from pg_users import User, postmasters

from byrote.embedded.server import Server, open_server
from tests.support import state_of, until

pytestmark = pytest.mark.xdist_group("embedded")


def remember(server: Server, rows: int) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("create table kept (n int)")
        connection.execute("insert into kept select generate_series(1, %s::int)", [rows])


def recall(server: Server) -> int:
    with psycopg.connect(server.url) as connection:
        row = connection.execute("select count(*) from kept").fetchone()
    assert row is not None
    return int(row[0])


def test_a_killed_starter_leaves_the_server_to_the_others(
    home: Path, user: Callable[..., User]
) -> None:
    starter = user()
    pid = starter.joined()
    with open_server(home, environ=os.environ, durable=False) as server:
        starter.kill()
        remember(server, 10)

        assert recall(server) == 10
        assert server.pid == pid
    assert postmasters(home) == []


def test_the_next_user_adopts_the_server_of_a_killed_last_user(
    home: Path, user: Callable[..., User]
) -> None:
    last = user()
    pid = last.joined()
    last.kill()

    assert postmasters(home) == [pid]
    with open_server(home, environ=os.environ, durable=False) as adopted:
        assert adopted.pid == pid
    assert postmasters(home) == []


def test_a_killed_postmaster_is_replaced_with_the_data_intact(home: Path) -> None:
    """Here it is a child of this process, a zombie until it is reaped."""
    first = open_server(home, environ=os.environ)
    remember(first, 1000)
    os.kill(first.pid, signal.SIGKILL)
    with open_server(home, environ=os.environ) as second:
        assert second.pid != first.pid
        assert recall(second) == 1000
    assert postmasters(home) == [second.pid]  # The first user still counts.
    first.close()
    assert postmasters(home) == []


def test_a_postmaster_killed_under_a_starter_that_never_reaps_it_is_replaced(
    home: Path, user: Callable[..., User]
) -> None:
    pid = user().joined()
    os.kill(pid, signal.SIGKILL)
    until(lambda: state_of(pid) == "Z")
    with open_server(home, environ=os.environ, durable=False) as server:
        remember(server, 10)

        assert server.pid != pid
        assert recall(server) == 10


def test_a_stale_pid_that_now_belongs_to_another_program_is_passed_over(home: Path) -> None:
    """After a restart of a container the old pid is often taken again."""
    with open_server(home, environ=os.environ, durable=False) as server:
        note = (home / "data" / "postmaster.pid").read_text()
        owner = (home / "data").stat()
    as_server = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "600"], **as_server) as other:
        stale = note.replace(str(server.pid), str(other.pid), 1)
        (home / "data" / "postmaster.pid").write_text(stale)
        with open_server(home, environ=os.environ, durable=False) as again:
            assert again.pid not in {server.pid, other.pid}
        assert other.poll() is None
        other.kill()


def test_an_interrupted_initdb_leaves_nothing_half_made(
    empty_home: Path, user: Callable[..., User]
) -> None:
    starter = user()
    until((empty_home / "data.new" / "global").exists)
    starter.kill()

    assert not (empty_home / "data").exists()
    with open_server(empty_home, environ=os.environ, durable=False) as server:
        remember(server, 10)

        assert recall(server) == 10
    assert not (empty_home / "data.new").exists()
