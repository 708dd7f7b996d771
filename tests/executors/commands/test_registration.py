# SPDX-License-Identifier: MIT
"""How tasks become commands, and what is refused at the door."""

from typing import Any

import pytest

from byrote import App, Command, Container, Limits
from byrote.core.errors import BadOption, DuplicateTask


def test_a_command_is_a_task_that_takes_anything() -> None:
    app = App()
    resize = app.command("resize", ["node", "resize.mjs"], queue="media", version=2, timeout="10s")
    spec = resize.spec("a.png", width=100)

    assert (spec.task, spec.version, spec.delivery.queue) == ("resize", 2, "media")
    assert app.registry.commands == {"resize@2": Command(argv=("node", "resize.mjs"))}
    with pytest.raises(BadOption, match="only a worker can execute it"):
        resize("a.png")


@pytest.mark.parametrize(
    ("executor", "command"),
    [
        ("hand", None),
        ("command", Command()),
        ("container", Command(container=Container())),
        (Command(limits=Limits(cpu=1)), Command(limits=Limits(cpu=1))),
    ],
)
def test_a_function_reports_where_it_runs(executor: Any, command: Command | None) -> None:
    app = App()

    @app.task(executor=executor)
    def work() -> None: ...

    assert app.registry.find("work", 1).command == command


@pytest.mark.parametrize(
    "options",
    [
        {"argv": "node resize.mjs"},
        {"argv": []},
        {"argv": ["a\x00b"]},
        {"argv": ["a"], "payload": "telegram"},
        {"argv": ["a"], "env": ["A=1"]},
        {"argv": ["a"], "nonsense": 1},
    ],
    ids=str,
)
def test_a_command_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises((BadOption, TypeError)):
        App().command("x", **options)


def test_an_executor_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadOption, match="'hand', 'command', 'container'"):
        App().task(executor="carrier pigeon")(print)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_a_limit_is_a_whole_number(limit: Any) -> None:
    with pytest.raises(BadOption):
        Limits(memory=limit)


def test_two_programs_under_one_name_are_refused() -> None:
    app = App()
    app.command("x", ["a"])
    app.command("x", ["a"])
    with pytest.raises(DuplicateTask):
        app.command("x", ["b"])
