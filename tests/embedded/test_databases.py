# SPDX-License-Identifier: MIT
"""Each project has its own database on the embedded server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click.testing
import psycopg
import pytest

from byrote.cli.root import root
from byrote.embedded.databases import MARKS, databases, name_of, project_of, project_url
from byrote.embedded.server import Server, open_server

pytestmark = pytest.mark.xdist_group("embedded")


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    with open_server(home, environ=os.environ, durable=False) as opened:
        yield opened


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Makes folders that are projects."""

    def make(name: str, mark: str = "pyproject.toml") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / mark).touch()
        return folder

    return make


@pytest.mark.parametrize("mark", MARKS)
def test_a_folder_below_belongs_to_the_project(project: Callable[..., Path], mark: str) -> None:
    top = project("Müller & Shop", mark)
    below = top / "src" / "deep"
    below.mkdir(parents=True)

    assert project_of(below) == project_of(top) == top.resolve()
    assert name_of(top).startswith("m_ller_shop_")


def test_a_folder_without_any_mark_is_its_own_project(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    assert project_of(tmp_path / "a") == (tmp_path / "a").resolve()
    assert len(name_of(Path("/" + "x" * 200))) < 63


def test_two_projects_have_two_databases(server: Server, project: Callable[[str], Path]) -> None:
    one, two = project("one"), project("two")
    urls = [project_url(server.url, folder) for folder in (one, two, one)]

    assert urls[0] == urls[2] != urls[1]
    with psycopg.connect(urls[0]) as first, psycopg.connect(urls[1]) as second:
        assert first.info.dbname == name_of(one)
        assert second.info.dbname == name_of(two)
    made = {each.name: each.project for each in databases(server.url)}
    assert made == {"byrote": None, name_of(one): str(one), name_of(two): str(two)}


def test_a_database_is_made_once_by_any_number_at_a_time(
    server: Server, project: Callable[[str], Path]
) -> None:
    folder = project("busy")
    with ThreadPoolExecutor(8) as pool:
        urls = set(pool.map(lambda _: project_url(server.url, folder), range(16)))

    assert len(urls) == 1


ENQUEUE = """
import psycopg
from byrote import App

app = App()
app.task(name="report")(print).enqueue()
with psycopg.connect(app.address.conninfo("test")) as connection:
    [runs] = connection.execute("select count(*) from byrote_runs").fetchone()
    print(connection.info.dbname, runs)
app.close()
"""


def test_apps_of_two_projects_do_not_see_each_others_runs(
    home: Path, project: Callable[[str], Path]
) -> None:
    environ = {name: value for name, value in os.environ.items() if "DATABASE_URL" not in name}
    environ["BYROTE_PG_HOME"] = str(home)
    command = [sys.executable, "-c", ENQUEUE]
    folders = [project("one"), project("two")]
    said = [
        subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True)
        for folder in folders
    ]

    assert [each.stdout.split() for each in said] == [[name_of(folder), "1"] for folder in folders]


def test_the_command_line_names_the_projects_database(
    server: Server, home: Path, project: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = click.testing.CliRunner(env={"BYROTE_PG_HOME": str(home)})
    folder = project("shop")
    monkeypatch.chdir(folder)
    url = runner.invoke(root, ["pg", "url"]).output.strip()
    old = runner.invoke(root, ["pg", "url", "--database", "byrote"]).output.strip()
    listed = [
        json.loads(line)
        for line in runner.invoke(root, ["pg", "list", "--json"]).output.split("\n")
        if line
    ]

    monkeypatch.setenv("BYROTE_PG_DATABASE", "shared")
    shared = runner.invoke(root, ["pg", "url"]).output.strip()

    assert url == project_url(server.url, folder)
    assert shared == server.url.replace("/byrote?", "/shared?")
    assert old == server.url
    assert {each["name"] for each in listed} == {"byrote", name_of(folder)}
    assert str(folder) in runner.invoke(root, ["pg", "list"]).output
