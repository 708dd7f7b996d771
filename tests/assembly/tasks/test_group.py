# SPDX-License-Identifier: MIT
"""Groups of tasks, and modules that an app includes."""

from contextlib import contextmanager
from typing import Any

import pytest

from byrote import App, Context, Retry, TaskGroup
from byrote.core.errors import BadOption, DuplicateTask, UnknownQueue
from byrote.testing import captured_tasks, run_tasks
from tests.support import Db


def test_tasks_of_a_group_have_its_defaults_and_run_after_they_were_added(app: App, db: Db) -> None:
    mail = TaskGroup(prefix="mail.", queue="post", retry=Retry(attempts=4), labels={"a": "b"})

    @mail.task
    def send(to: str) -> str:
        return f"to {to}"

    @mail.task(name="bulk", queue="slow")
    def bulk() -> None: ...

    app.add(mail)

    @mail.task
    def late() -> int:
        return 3

    runs = [send.enqueue("ada"), bulk.enqueue(), late.enqueue()]
    done = {run.task: run for run in run_tasks(app, connection=db)}

    assert done.keys() == {"mail.send", "mail.bulk", "mail.late"}
    assert [run.id for run in runs] == [
        done[name].id for name in ("mail.send", "mail.bulk", "mail.late")
    ]
    assert (done["mail.send"].result, done["mail.late"].result) == ("to ada", 3)
    assert [done[name].queue for name in ("mail.send", "mail.bulk")] == ["post", "slow"]
    assert (done["mail.send"].max_attempts, done["mail.send"].labels) == (4, {"a": "b"})


def test_a_group_that_no_app_has_added_cannot_enqueue() -> None:
    group = TaskGroup()

    @group.task(name="lonely")
    def lonely() -> int:
        return 1

    assert lonely() == 1
    with pytest.raises(BadOption, match=r"the group of lonely was not added.*app\.add\(group\)"):
        lonely.enqueue()
    app = App("postgresql://")
    app.add(group)
    with captured_tasks(app) as calls:
        lonely.using(priority=3).enqueue()
    assert [(call.task, call.priority) for call in calls] == [("lonely", 3)]


def test_hooks_of_the_app_surround_tasks_of_a_group() -> None:
    app, group, seen = App("postgresql://"), TaskGroup(), list[str]()

    @app.around
    @contextmanager
    def hook(ctx: Context) -> Any:
        seen.append(ctx.task)
        yield

    @group.task(name="t")
    def task() -> None: ...

    app.add(group)
    app.registry.find("t", 1).function(
        Context(run_id="1", task="t", queue="default", attempt=1, labels={})
    )

    assert seen == ["t"]


def test_mistakes_with_groups_are_refused() -> None:
    app, other = App("postgresql://", queues=["mail"]), App("postgresql://")
    group, misplaced = TaskGroup(queue="mail"), TaskGroup(queue="nowhere")

    @misplaced.task(name="m")
    def misplaced_task() -> None: ...

    app.add(group)
    app.add(group)
    with pytest.raises(BadOption, match="another app"):
        other.add(group)
    with pytest.raises(UnknownQueue):
        app.add(misplaced)
    with pytest.raises(BadOption, match="not a queue name"):
        TaskGroup(queue="no good")

    @app.task(name="twice", queue="mail")
    def one() -> None: ...

    with pytest.raises(DuplicateTask):
        group.task(name="twice")(lambda: None)


@pytest.mark.parametrize("include", ["shop.mail", ["shop mail"], [3]])
def test_include_is_a_list_of_module_names(include: Any) -> None:
    with pytest.raises(BadOption, match="include is a list of module names"):
        App("postgresql://", include=include)
