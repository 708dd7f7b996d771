# SPDX-License-Identifier: MIT
"""`byrote enqueue` takes the task's own delivery options: of its app, or as workers announce."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byrote.core.policy import Retry
from byrote.core.ports.announced import TaskPolicy
from byrote.core.run import Run
from byrote.executors.runtime.loading import load_app, policies_of
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.cli.console import Process, Said, byrote
from tests.support import Db, count, run_of

SHOP = """
from datetime import date, timedelta
from byrote import App, Retry

app = App()

@app.task(queue="mail", priority=3, timeout="90s", labels={"team": "post"},
          retry=Retry(attempts=7, backoff="fixed"), aliases=["old.send"])
def send_email(to: str, copies: int = 1): ...

@app.task(unique_key=lambda day: f"report:{day:%Y-%m}")
def report(day: date): ...

@app.task(version=1, queue="slow")
def build(): ...

@app.task(name="SHOP.build", version=2, queue="fast")
def build_v2(): ...

@app.on_enqueue
def mark(spec):
    return spec.using(labels={**(spec.delivery.labels or {}), "by": "hook"})
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"shop_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(SHOP.replace("SHOP", name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def facts(run: Run) -> tuple[Any, ...]:
    return run.queue, run.priority, run.max_attempts, run.timeout and run.timeout.total_seconds()


def live(
    db: Db, worker: str, policies: dict[str, TaskPolicy], *others: str, aliases: Any = ()
) -> None:
    """Announce a worker with these tasks."""
    described = {"worker": worker, "pid": 1, "hands": 1, "concurrency": 1, "host": "h"}
    tasks = [*policies, *others, *aliases]
    more = {"version": "0", "python": "3", "queues": ["default"], "tasks": tasks}
    own = {"policies": policies, "aliases": list(aliases)}
    fetch(db, queries.register(described | more | own))


@pytest.mark.parametrize("name", ["send_email", "old.send", "{shop}.send_email"])
def test_a_run_has_the_policy_of_the_task_in_the_app(
    url: str, db: Db, shop: str, name: str
) -> None:
    said = byrote("enqueue", name.format(shop=shop), '{"to": "a"}', "--app", f"{shop}:app", url=url)
    run = run_of(db, said.out.strip())

    assert said.err == ""
    assert (run.task, *facts(run)) == (f"{shop}.send_email", "mail", 3, 7, 90)
    assert run.labels == {"team": "post", "by": "hook"}


def test_the_setting_app_is_used_and_options_have_precedence(url: str, db: Db, shop: str) -> None:
    options = "--queue q --priority 9 --attempts 2 --timeout 5s --label team=x --json"
    words = ("enqueue", "send_email", '{"to": "a"}', *options.split())
    used = byrote(*words, url=url, BYROTE_APP=f"{shop}:app").object
    run = run_of(db, used["id"])

    assert facts(run) == ("q", 9, 2, 5)
    assert used["labels"] == {"team": "x", "by": "hook"}
    assert used["task"] == f"{shop}.send_email"
    assert (used["queue"], used["max_attempts"], used["timeout_s"], used["policy"]) == (
        "q", 2, 5, "app",
    )  # fmt: skip


def test_the_newest_version_is_taken_unless_one_is_named(url: str, db: Db, shop: str) -> None:
    def build(*words: str) -> Run:
        said = byrote("enqueue", "build", "--app", f"{shop}:app", *words, url=url)
        return run_of(db, said.out.strip())

    newest, first = build(), build("--version", "1")

    assert (newest.version, newest.queue) == (2, "fast")
    assert (first.version, first.queue) == (1, "slow")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["send_emial"], "has no task 'send_emial'; did you mean {shop}.send_email@1?"),
        (["build", "--version", "3"], "{shop}.build has no version 3 in {shop}:app; it has 1, 2."),
        (["send_email", '{{"whom": "a"}}'], "{shop}.send_email(to: str, copies: int = 1)"),
        (["report", '{{"day": "soon"}}'], "$.day"),
    ],
)
def test_a_call_that_the_app_could_not_execute_is_refused(
    url: str, db: Db, *, shop: str, words: list[str], message: str
) -> None:
    words = [word.format(shop=shop) for word in words]
    said = byrote("enqueue", *words, "--app", f"{shop}:app", url=url)

    assert said.code == 2
    assert message.format(shop=shop) in said.err
    assert count(db, "byrote_runs") == 0


def test_the_tasks_own_unique_key_applies(url: str, db: Db, shop: str) -> None:
    def report(day: str) -> Said:
        words = ("enqueue", "report", f'{{"day": "{day}"}}', "--app", f"{shop}:app")
        return byrote(*words, url=url)

    first, second = report("2026-11-01"), report("2026-11-30")

    assert second.out == first.out
    assert run_of(db, first.out.strip()).unique_key == "report:2026-11"


def test_every_line_of_many_is_checked(url: str, db: Db, shop: str) -> None:
    words = ("enqueue", "send_email", "--many", "-", "--app", f"{shop}:app")
    said = byrote(*words, url=url, stdin='{"to": "a"}\n{"too": "b"}\n')

    assert said.code == 2
    assert count(db, "byrote_runs") == 0


def test_without_an_app_the_policy_is_what_workers_announce(url: str, db: Db) -> None:
    policy = TaskPolicy(queue="mail", priority=3, timeout_ms=90_000, retry=Retry(attempts=7))
    live(db, "w1", {"shop.send@2": policy, "shop.send@1": TaskPolicy()}, aliases=["send@2"])
    live(db, "w2", {"shop.send@2": policy})
    used = byrote("enqueue", "send", "--json", url=url).object
    run = run_of(db, used["id"])

    assert (run.task, run.version, *facts(run)) == ("shop.send", 2, "mail", 3, 7, 90)
    assert (used["policy"], used["warning"]) == ("workers", None)


def test_workers_that_disagree_are_reported_and_not_followed(url: str, db: Db) -> None:
    live(db, "w1", {"shop.send@1": TaskPolicy(queue="a")})
    live(db, "w2", {"shop.send@1": TaskPolicy(queue="b")})
    said = byrote("enqueue", "shop.send", url=url)

    assert run_of(db, said.out.strip()).queue == "default"
    assert "live workers announce 2 different policies of shop.send@1" in said.err


def test_a_task_that_no_live_worker_knows_is_accepted_with_a_warning(url: str, db: Db) -> None:
    live(db, "w", {"shop.charge@1": TaskPolicy()})
    said = byrote("enqueue", "shop.chrage", url=url)
    other = byrote("enqueue", "shop.charge", "--version", "2", url=url)

    near = "the nearest that is known is shop.charge@1."
    assert f"no live worker knows shop.chrage@1; {near}" in said.err
    assert f"no live worker knows shop.charge@2; {near}" in other.err
    assert count(db, "byrote_runs") == 2


def test_a_function_name_of_two_tasks_is_left_as_it_is(url: str, db: Db) -> None:
    live(db, "w", {"a.send@1": TaskPolicy(), "b.send@1": TaskPolicy()})
    said = byrote("enqueue", "send", url=url)

    assert run_of(db, said.out.strip()).task == "send"
    assert "send@1 could be a.send or b.send" in said.err


def test_a_worker_announces_the_policies_of_its_app(
    url: str, db: Db, shop: str, tmp_path: Path
) -> None:
    with Process("worker", f"{shop}:app", "--hands", "1", url=url, folder=tmp_path) as worker:
        worker.wrote("WorkerStarted")
        [found] = [
            one
            for one in fetch(db, queries.announced_tasks())
            if "send_email" in one.key and not one.alias
        ]

    assert found.policies[0].queue == "mail"
    assert found.policies[0].retry == Retry(attempts=7, backoff="fixed")


def test_policies_of_very_many_tasks_are_not_announced(shop: str) -> None:
    app = load_app(f"{shop}:app")
    assert len(policies_of(app.registry)) == 5
    for number in range(1_000):
        app.task(name=f"t{number}")(lambda: None)

    assert policies_of(app.registry) == {}
