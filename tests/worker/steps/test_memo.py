# SPDX-License-Identifier: MIT
"""`memo=` from the producer through a worker and back: three processes, one file of code."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from byrote import App
from byrote.core.errors import BadOption
from tests.cli.console import byrote
from tests.support import Db, count, history, run_of

CODE = """
from byrote import App

app = App()

def helper(n):
    return n * 2

@app.task(memo="7d")
def double(n, *, mark):
    open(mark, "a").write("x")
    return helper(n)
"""
SEND = """
import json, sys
from shop import app, double
mark, how = sys.argv[1:]
if how == "one":
    runs = [double.enqueue(21, mark=mark)]
else:
    runs = app.enqueue_many([double.spec(21, mark=mark), double.spec(22, mark=mark)])
states = [run.refresh().status.value for run in runs]
print(json.dumps({"ids": [run.id for run in runs], "states": states,
                  "results": [run.result(0) for run in runs if run.status == "SUCCESSFUL"]}))
"""


class Shop:
    """A folder with the code of a small app, its producer and its worker."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self._url = folder, url
        self._mark = folder / "mark"
        self.write(CODE)

    def write(self, code: str) -> None:
        (self.folder / "shop.py").write_text(code)

    def send(self, how: str = "one") -> Any:
        return json.loads(self._python("-c", SEND, str(self._mark), how))

    def work(self, *options: str) -> None:
        words = ("worker", "shop:app", "--drain", "--hands", "1", "--log-level", "error")
        self._python("-m", "byrote.cli.main", *words, *options)

    def _python(self, *words: str) -> str:
        env = {**os.environ, "BYROTE_DATABASE_URL": self._url, "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [sys.executable, *words]
        done = subprocess.run(
            argv, cwd=self.folder, env=env, capture_output=True, text=True, check=False, timeout=90
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def computed(self) -> int:
        return len(self._mark.read_text()) if self._mark.exists() else 0


@pytest.fixture
def shop(tmp_path: Path, url: str) -> Shop:
    return Shop(tmp_path, url)


@pytest.mark.parametrize("executor", ["hand", "inline"])
def test_what_was_computed_answers_until_the_code_changes(
    shop: Shop, db: Db, executor: str
) -> None:
    first = shop.send()
    assert first["states"] == ["READY"]
    shop.work("--executor", executor)
    second, many = shop.send(), shop.send("many")

    assert (second["states"], second["results"]) == (["SUCCESSFUL"], [42])
    assert (many["states"], many["results"]) == (["SUCCESSFUL", "READY"], [42])
    assert run_of(db, second["ids"][0]).memo_of == first["ids"][0]
    assert history(db, second["ids"][0]) == ["Enqueued", "Remembered"]
    assert shop.computed == 1

    # The function itself stays as it is; a helper beside it does not.
    shop.write((shop.folder / "shop.py").read_text().replace("n * 2", "n * 3"))
    assert shop.send()["states"] == ["READY"]
    shop.work("--executor", executor)
    assert shop.send()["results"] == [63]
    assert shop.computed == 3


def test_who_knows_only_a_name_is_not_answered(shop: Shop, db: Db, url: str) -> None:
    shop.send()
    shop.work()
    spec = json.dumps({"mark": str(shop.folder / "mark")})
    said = byrote("enqueue", "shop.double", spec, "--args", "[21]", "--json", url=url)
    assert run_of(db, said.object["id"]).status == "READY"
    # The very same spec; what it computes is remembered like any other result.
    assert run_of(db, said.object["id"]).spec_hash == run_of(db, shop.send()["ids"][0]).spec_hash
    shop.work()

    assert shop.computed == 2
    assert run_of(db, shop.send()["ids"][0]).memo_of == said.object["id"]


@pytest.mark.needs("commands")
def test_a_worker_of_commands_remembers_nothing(shop: Shop, db: Db) -> None:
    """Its programs are started anew for each attempt: from whatever code is there by then."""
    shop.send()
    shop.work("--executor", "command")

    assert shop.computed == 1
    assert count(db, "byrote_memo") == 0
    assert shop.send()["states"] == ["READY"]


def test_runs_show_prints_the_source_of_a_result(shop: Shop, url: str) -> None:
    first = shop.send()["ids"][0]
    shop.work()
    second = shop.send()["ids"][0]

    shown = byrote("runs", "show", second, url=url).out
    assert "memo of" in shown
    assert first in shown
    assert byrote("runs", "show", second, "--json", url=url).object["memo_of"] == first


def test_a_command_cannot_have_a_memo() -> None:
    app = App()
    with pytest.raises(BadOption, match="is a command"):
        app.command("x", ["true"], memo="1d")
    with pytest.raises(BadOption, match="is a command"):
        app.task(executor="command", memo="1d")(abs)


@pytest.mark.parametrize("keep", ["0s", "20000d", 0.5])
def test_a_memo_has_a_sensible_length(keep: str | float) -> None:
    with pytest.raises(BadOption, match="between 1 second and 10 years"):
        App().task(memo=keep)(abs)


def test_a_task_without_a_file_is_never_answered(app: App, db: Db) -> None:
    """Typed into a prompt, for example: another process cannot compare the code."""
    names: dict[str, Any] = {"__name__": "typed_in", "app": app}
    exec("@app.task(memo='1d')\ndef typed(n):\n    return n", names)  # noqa: S102 -- as a prompt does it.
    run = names["typed"].enqueue(1)

    assert run.status == "READY"
