# SPDX-License-Identifier: MIT
"""Default names of tasks, and their aliases."""

import runpy
import sys
from pathlib import Path

import pytest

from byrote import App
from byrote.core.errors import BadOption, DuplicateTask, UnknownTask
from byrote.core.text.names import bare_name
from byrote.core.unserved import nearest
from byrote.sdk import Handlers

pytestmark = pytest.mark.pure

SHOP = """
from byrote import App
app = App()
@app.task
def charge():
    pass
NAME = charge.name
"""


def report() -> str:
    return "ours"


def other(name: str) -> object:
    """A function of the same name in another module."""

    def made() -> str:
        return "theirs"

    made.__name__ = made.__qualname__ = name
    made.__module__ = "billing.tasks"
    return made


def test_a_task_is_named_after_its_module_and_function() -> None:
    app, handlers = App(), Handlers()
    handlers.task()(report)

    assert app.task(report).name == "tests.core.test_task_names.report"
    assert [task.name for task in handlers.registry] == ["tests.core.test_task_names.report"]
    assert app.task(name="monthly")(report).name == "monthly"
    assert app.command("resize", ["./resize"]).name == "resize"


@pytest.mark.parametrize("package", [False, True])
def test_a_script_names_its_tasks_as_a_worker_that_imports_it(
    tmp_path: Path, package: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    if package:
        (folder / "__init__.py").touch()
    expected = "store.shop.charge" if package else "shop.charge"

    # `run_path` and `run_module` set `__main__` as `python FILE` and `python -m` do.
    assert runpy.run_path(str(folder / "shop.py"), run_name="__main__")["NAME"] == expected
    monkeypatch.syspath_prepend(str(tmp_path))
    by_name = runpy.run_module("store.shop", run_name="__main__", alter_sys=True)
    assert by_name["NAME"] == "store.shop.charge"


def test_a_function_of_a_notebook_has_its_bare_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__main__", type(sys)("__main__"))
    made = other("charge")
    made.__module__ = "__main__"  # type: ignore[attr-defined]
    task = App().task(made)  # type: ignore[call-overload]

    assert task.name == "charge"
    assert bare_name("shop.tasks.charge") == bare_name("charge") == "charge"


def test_the_bare_name_finds_the_task_unless_its_name_or_aliases_are_chosen() -> None:
    app = App()
    app.task(report)
    assert app.registry.find("report", 1).function is report
    assert app.registry.bare == ["report@1"]

    for options in ({"name": "monthly"}, {"aliases": ()}, {"aliases": ("old",)}):
        app = App()
        app.task(**options)(report)
        with pytest.raises(UnknownTask):
            app.registry.find("report", 1)
        assert app.registry.bare == []


def test_chosen_aliases_find_the_task_in_its_version_only() -> None:
    app = App()
    app.task(aliases=["old", "older"], version=2)(report)

    assert app.registry.find("older", 2).function is report
    with pytest.raises(UnknownTask):
        app.registry.find("old", 1)
    keys = {task.key for task in app.registry.served}
    assert keys == {"tests.core.test_task_names.report@2", "old@2", "older@2"}


def test_a_name_wins_over_an_alias() -> None:
    app = App()
    app.task(report)
    app.task(name="report")(other("charge"))

    assert app.registry.find("report", 1).function is not report
    assert app.registry.bare == []


def test_a_bare_name_of_two_tasks_is_an_alias_of_neither() -> None:
    app = App()
    app.task(report)
    app.task(other("report"))  # type: ignore[call-overload]

    with pytest.raises(UnknownTask):
        app.registry.find("report", 1)
    assert len(app.registry.served) == 2


def test_wrong_aliases_are_refused_where_they_are_written() -> None:
    app = App()
    for aliases in ("old", [" "], [f"a{n}" for n in range(21)]):
        with pytest.raises(BadOption):
            app.task(aliases=aliases)(report)
    app.task(aliases=["old"])(report)
    with pytest.raises(DuplicateTask, match="old is an alias of"):
        app.task(name="b", aliases=["old"])(other("report"))


def test_around_wraps_a_task_once_for_all_its_names() -> None:
    app = App()
    app.task(report)
    app.around(lambda _ctx: __import__("contextlib").nullcontext())

    assert len(app.registry) == 1
    assert (
        app.registry.find("report", 1).function
        is app.registry.find("tests.core.test_task_names.report", 1).function
    )


def test_the_nearest_of_a_bare_name_are_the_tasks_of_that_name() -> None:
    known = ["billing.report@1", "shop.report@1", "shop.resort@1"]

    assert nearest("report@1", known) == "billing.report@1, shop.report@1"
    assert nearest("shop.report@2", known) == "shop.report@1"
    assert nearest("shop.resot@1", known) == "shop.resort@1"
