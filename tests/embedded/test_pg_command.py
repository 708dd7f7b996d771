# SPDX-License-Identifier: MIT
import json
import os
from collections.abc import Callable
from pathlib import Path

import click.testing
import psycopg
import pytest
from pg_users import User, postmasters

from byrote.cli.root import root
from byrote.embedded.server import open_server
from tests.support import until

pytestmark = pytest.mark.xdist_group("embedded")

type Run = Callable[..., click.testing.Result]


@pytest.fixture
def run(empty_home: Path) -> Run:
    """Run `byrote pg` on this home."""

    def invoke(*args: str, stdin: str | None = None) -> click.testing.Result:
        runner = click.testing.CliRunner(env={"BYROTE_PG_HOME": str(empty_home)})
        return runner.invoke(root, ["pg", *args], input=stdin)

    return invoke


@pytest.mark.parametrize("command", ["status", "url", "list", "logs", "stop", "destroy"])
def test_without_a_server_every_command_exits_with_not_found(run: Run, command: str) -> None:
    assert run(command).exit_code == 4


@pytest.mark.parametrize("command", ["status", "url", "list", "psql", "logs", "stop", "destroy"])
def test_every_help_has_an_example(run: Run, command: str) -> None:
    said = " ".join(run(command, "--help").output.split())

    assert "Example: " in said
    assert f"byrote pg {command}" in said


def test_status_prints_process_and_address(run: Run, home: Path) -> None:
    with open_server(home, environ=os.environ, durable=False) as server:
        found = json.loads(run("status", "--json").output)
    after = json.loads(run("status", "--json").output)

    assert (found["state"], found["pid"], found["url"]) == ("running", server.pid, server.url)
    assert found["used"] is True
    assert (after["state"], after["pid"]) == ("stopped", None)


def test_status_is_readable_by_people(run: Run, home: Path) -> None:
    said = run("status")

    assert said.exit_code == 0
    assert "state     stopped" in said.output


def test_url_starts_nothing_without_the_option(run: Run, home: Path) -> None:
    said = run("url")

    assert said.exit_code == 4
    assert "url --start" in said.output
    assert postmasters(home) == []


def test_a_server_started_for_its_url_stays_until_it_is_stopped(run: Run, home: Path) -> None:
    url = run("url", "--start").output.strip()
    with psycopg.connect(url) as connection:
        connection.execute("select 1")
    again = json.loads(run("url", "--json").output)
    running = postmasters(home)
    said = run("stop")

    assert again == {"url": url}
    assert len(running) == 1
    assert (said.exit_code, said.output) == (0, "Stopped.\n")
    assert postmasters(home) == []


def test_stop_leaves_a_used_server_alone_unless_forced(
    run: Run, home: Path, user: Callable[..., User]
) -> None:
    pid = user().joined()
    refused = run("stop")
    still = postmasters(home)
    forced = run("stop", "--force")

    assert (refused.exit_code, still) == (1, [pid])
    assert (forced.exit_code, postmasters(home)) == (0, [])


def test_tcp_needs_the_password(run: Run, home: Path) -> None:
    url = run("url", "--tcp", "--start").output.strip()
    with psycopg.connect(url) as connection:
        answer = connection.execute("select 1").fetchone()

    assert answer == (1,)
    assert "@127.0.0.1:" in url
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url.replace("@", "x@"))
    assert run("url", "--tcp").output.strip() == url


def test_tcp_is_refused_while_others_use_the_server(
    run: Run, home: Path, user: Callable[..., User]
) -> None:
    pid = user().joined()
    said = run("url", "--tcp")

    assert said.exit_code == 1
    assert "TCP needs a restart" in said.output
    assert postmasters(home) == [pid]


def test_tcp_ends_with_the_server(run: Run, home: Path) -> None:
    run("url", "--tcp", "--start")
    run("stop")
    with open_server(home, environ=os.environ) as server, psycopg.connect(server.url) as one:
        assert one.execute("show listen_addresses").fetchone() == ("",)


def test_psql_uses_the_server_and_leaves_nothing_running(
    run: Run, empty_home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = run("psql", "-Atc", "select 41 + 1")

    assert said.exit_code == 0
    assert capfd.readouterr().out == "42\n"
    assert postmasters(empty_home) == []


def test_psql_passes_its_failure_on(
    run: Run, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = run("psql", "-v", "ON_ERROR_STOP=1", "-c", "select nothing_there")

    assert said.exit_code == 1
    assert "nothing_there" in capfd.readouterr().err


def test_logs_show_the_end(run: Run, home: Path) -> None:
    open_server(home, environ=os.environ, durable=False).close()
    lines = run("logs", "-n", "1", "--json").output.splitlines()

    assert "database system is shut down" in json.loads(lines[0])["line"]
    assert len(lines) == 1


def test_destroy_asks_first(run: Run, home: Path) -> None:
    said = run("destroy", stdin="n\n")

    assert said.exit_code == 1
    assert (home / "data" / "PG_VERSION").exists()


def test_destroy_removes_the_server_and_nothing_else(run: Run, home: Path) -> None:
    run("url", "--start")
    (home / "mine.txt").write_text("not the server's")
    said = run("destroy", "--yes")

    assert said.exit_code == 0
    assert [path.name for path in home.iterdir()] == ["mine.txt"]
    assert postmasters(home) == []


def test_destroy_leaves_a_used_server_alone(
    run: Run, home: Path, user: Callable[..., User]
) -> None:
    pid = user().joined()

    assert run("destroy", "--yes").exit_code == 1
    # A child that was forked this instant still looks like the postmaster.
    until(lambda: postmasters(home) == [pid])
