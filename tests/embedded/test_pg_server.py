# SPDX-License-Identifier: MIT
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from pg_users import User, postmasters

from byrote.embedded.errors import HomeUnusable, ServerInUse, StartFailed
from byrote.embedded.server import open_server
from tests.programs import ELSEWHERE
from tests.support import until

pytestmark = pytest.mark.xdist_group("embedded")

FORKING_USER = """
import os, sys
from pathlib import Path
from byrote.embedded.server import open_server
server = open_server(Path(sys.argv[1]), environ=os.environ, durable=False)
print(server.pid, flush=True)
if os.fork() == 0:
    os.close(1)  # So that our parent's reader sees the end of the parent.
    sys.stdin.readline()
    server.close()
    os._exit(0)
server.close()
"""


def ask(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def test_ten_processes_at_once_share_one_postmaster(
    empty_home: Path, user: Callable[..., User]
) -> None:
    """One starts it, nine join, and the last one out stops it."""
    users = [user() for _ in range(10)]
    pids = {each.joined() for each in users}
    running = postmasters(empty_home)
    for each in users[:-1]:
        each.leave()
    left_with_one = postmasters(empty_home)
    users[-1].leave()

    assert running == left_with_one == list(pids)
    assert postmasters(empty_home) == []


def test_the_url_leads_to_our_database(empty_home: Path) -> None:
    with open_server(empty_home, environ=os.environ, durable=False) as server:
        found = ask(server.url, "select current_user || ' in ' || current_database()")

        assert found == "byrote in byrote"
        assert server.pid == postmasters(empty_home)[0]


def test_closing_twice_leaves_the_next_user_alone(home: Path) -> None:
    first = open_server(home, environ=os.environ, durable=False)
    with open_server(home, environ=os.environ, durable=False) as second:
        first.close()
        first.close()

        assert ask(second.url, "select 1") == 1
    assert postmasters(home) == []


@pytest.mark.parametrize(("durable", "fsync"), [(True, "on"), (False, "off")])
def test_only_a_durable_server_waits_for_the_disk(home: Path, *, durable: bool, fsync: str) -> None:
    with open_server(home, environ=os.environ, durable=durable) as server:
        assert ask(server.url, "show fsync") == fsync


def test_a_durable_user_does_not_join_a_careless_server(home: Path) -> None:
    with (
        open_server(home, environ=os.environ, durable=False),
        pytest.raises(ServerInUse, match="without fsync"),
    ):
        open_server(home, environ=os.environ)


def test_settings_given_win_over_ours(home: Path) -> None:
    settings = {"max_connections": "17"}
    with open_server(home, environ=os.environ, settings=settings, durable=False) as server:
        assert ask(server.url, "show max_connections") == "17"
        assert ask(server.url, "show shared_buffers") == "128MB"
        assert ask(server.url, "show jit") == "off"


def test_variables_meant_for_other_servers_change_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the server nor its clients follow PGPORT, PGDATA or PGHOST."""
    for name, value in {"PGPORT": "6543", "PGDATA": "/nowhere", "PGHOST": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    with open_server(home, environ=os.environ, durable=False) as server:
        assert ask(server.url, "show port") == "5432"


def test_a_deep_home_keeps_the_socket_short(empty_home: Path) -> None:
    empty_home.chmod(0o755)
    deep = empty_home.joinpath(*["a-rather-deep-project-directory"] * 5)
    with open_server(deep, environ=os.environ, durable=False) as server:
        socket = server.socket_dir / ".s.PGSQL.5432"

        assert socket.is_socket()
        assert len(os.fsencode(socket)) <= 107 < len(os.fsencode(deep / socket.name))
        assert ask(server.url, "select 1") == 1
    assert not server.socket_dir.exists()


@pytest.mark.parametrize("planted", ["link", "file", "directory"])
def test_what_another_user_put_in_the_sockets_place_is_left_alone(
    empty_home: Path, planted: str, tmp_path: Path
) -> None:
    """In /tmp everyone may write: it must neither be used nor keep the server from starting."""
    with open_server(empty_home, environ=os.environ, durable=False) as server:
        usual = server.socket_dir
    target = tmp_path / "target"
    target.mkdir(0o755)
    plant(usual, planted, target)
    try:
        with open_server(empty_home, environ=os.environ, durable=False) as server:
            used = server.socket_dir
            answered = ask(server.url, "select 1")
            private = used.stat().st_mode & 0o777
        listed = sorted(usual.parent.glob(used.name))
    finally:
        usual.rmdir() if planted == "directory" else usual.unlink()

    assert (answered, private) == (1, 0o700)
    assert used != usual
    assert listed == []
    assert target.stat().st_mode & 0o777 == 0o755


def plant(path: Path, kind: str, target: Path) -> None:
    match kind:
        case "link":
            path.symlink_to(target)
        case "file":
            path.touch()
        case _:
            if os.geteuid() != 0:
                pytest.skip(ELSEWHERE + "only root can make a directory of another user's")
            path.mkdir()
            os.chown(path, 12_345, 12_345)


def test_the_socket_is_private(home: Path) -> None:
    with open_server(home, environ=os.environ, durable=False) as server:
        assert server.socket_dir.stat().st_mode & 0o777 == 0o700
        assert server.socket_dir.stat().st_uid == server.data.stat().st_uid


def test_a_forked_child_keeps_the_server_up_but_never_stops_it(
    home: Path, user: Callable[..., User]
) -> None:
    parent = user(FORKING_USER)
    pid = parent.joined()
    until(lambda: parent.process.poll() is not None)
    with_child = postmasters(home)
    parent.leave()

    assert with_child == [pid]
    with open_server(home, environ=os.environ, durable=False) as adopted:
        assert adopted.pid == pid
    assert postmasters(home) == []


def test_a_kept_server_outlives_its_last_user(home: Path) -> None:
    with open_server(home, environ=os.environ, durable=False) as server:
        server.keep()
    with open_server(home, environ=os.environ, durable=False) as again:
        assert again.pid == server.pid
    assert postmasters(home) == [server.pid]


def test_a_failed_start_shows_the_log_and_holds_nothing(home: Path) -> None:
    with pytest.raises(StartFailed, match="no_such_setting"):
        open_server(home, environ=os.environ, settings={"no_such_setting": "1"}, durable=False)

    with open_server(home, environ=os.environ, durable=False) as server:
        assert ask(server.url, "select 1") == 1
    assert postmasters(home) == []


def test_data_of_another_major_version_is_refused(home: Path) -> None:
    open_server(home, environ=os.environ, durable=False).close()
    (home / "data" / "PG_VERSION").write_text("13\n")

    with pytest.raises(HomeUnusable, match="made by PostgreSQL 13"):
        open_server(home, environ=os.environ, durable=False)


def test_a_large_log_is_put_aside_at_the_next_start(home: Path) -> None:
    open_server(home, environ=os.environ, durable=False).close()
    subprocess.run(["truncate", "--size=11M", str(home / "postgres.log")], check=True)
    open_server(home, environ=os.environ, durable=False).close()

    assert (home / "postgres.log").stat().st_size < 1_000_000
    assert (home / "postgres.log.1").stat().st_size > 10_000_000
