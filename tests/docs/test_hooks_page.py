# SPDX-License-Identifier: MIT
"""The pages on hooks, Sentry, OpenTelemetry and modules do what they state."""

import json
from pathlib import Path
from typing import Any

import pytest

from byrote import App
from tests.docs.test_readme import blocks, byrote
from tests.support import Db

POOL, TENANT, ERRORS = range(3)


def drained(
    url: str, folder: Path, code: str, *runs: tuple[str, list[Any]], executor: str = "hand"
) -> tuple[list[Any], str]:
    """Execute runs of the page's app; returns their rows and the output of the worker."""
    (folder / "bazaar.py").write_text(code, encoding="utf-8")
    app = App(url)
    sent = []
    for name, args in runs:
        task = app.task(name=name)(lambda *_args: None)
        labels = {"tenant": "acme"}
        sent.append(task.using(labels=labels).enqueue(*args))
    words = ("worker", "bazaar:app", "--drain", "--hands", "1", "--executor", executor)
    out, err = byrote(*words, folder=folder, url=url).communicate(timeout=60)
    rows = [run.refresh() for run in sent]
    app.close()
    return rows, f"{out}{err}"


@pytest.mark.parametrize("executor", ["hand", "inline", "command"])
def test_tasks_run_inside_the_tenant_of_their_run(
    url: str, db: Db, tmp_path: Path, executor: str
) -> None:
    page = blocks("docs/how-to/hooks.md", "python")[TENANT]
    runs = (("report", []), ("areport", []))
    rows, _ = drained(url, tmp_path, page, *runs, executor=executor)

    assert [run.result for run in rows] == ["acme", "acme"]


def test_every_hand_has_a_pool(url: str, db: Db, tmp_path: Path) -> None:
    page = blocks("docs/how-to/hooks.md", "python")[POOL]
    [run], output = drained(url, tmp_path, page, ("query", ["select 1"]))

    assert run.result == "SELECT 1"
    assert output.count("pool closed") == 1


def test_errors_are_reported(url: str, db: Db, tmp_path: Path) -> None:
    page = blocks("docs/how-to/hooks.md", "python")[ERRORS]
    [run], _ = drained(url, tmp_path, page, ("pay", []))
    reports = [json.loads(line) for line in (tmp_path / "reports.jsonl").read_text().splitlines()]

    # The page's own retry is not in the test's spec: the first failure ends the run.
    assert reports == [
        {"level": "error", "task": "pay", "run": run.id, "error": "the bank does not answer"}
    ]


def test_the_producer_sends_its_tenant() -> None:
    page = blocks("docs/how-to/hooks.md", "python")[TENANT]
    names: dict[str, Any] = {}
    exec(page, names)  # noqa: S102 -- our own page.
    names["tenant"].set("globex")
    spec = names["app"].prepared(names["report"].spec())

    assert spec.delivery.labels == {"tenant": "globex"}


def test_a_run_fails_under_the_integration_of_sentry(url: str, db: Db, tmp_path: Path) -> None:
    [code] = blocks("docs/how-to/sentry.md", "python")
    [run], _ = drained(url, tmp_path, code, ("pay", []))

    assert run.faults[0]["message"] == "the bank does not answer"


def test_the_integration_of_opentelemetry_prints_spans(url: str, db: Db, tmp_path: Path) -> None:
    [code] = blocks("docs/how-to/opentelemetry.md", "python")
    [run], output = drained(url, tmp_path, code, ("send", ["ada"]))

    assert run.result == "ada"
    assert '"name": "process default"' in output


def test_tasks_in_several_modules_are_listed_and_run(url: str, db: Db, tmp_path: Path) -> None:
    app, images, mail = blocks("docs/how-to/modules.md", "python")
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, code in (("app", app), ("images", images), ("mail", mail)):
        (package / f"{name}.py").write_text(code, encoding="utf-8")
    producer = App(url)
    runs = [
        producer.task(name=name)(lambda _word: None).enqueue("x")
        for name in ("resize", "mail.send")
    ]
    listed, _ = byrote("tasks", "shop.app:app", folder=tmp_path, url=url).communicate(timeout=60)
    words = ("worker", "shop.app:app", "--drain", "--hands", "1", "--queues", "default,mail")
    byrote(*words, folder=tmp_path, url=url).communicate(timeout=60)

    assert [line.split()[:4] for line in listed.splitlines()[1:]] == [
        ["mail.send", "1", "mail", "async"],
        ["resize", "1", "default", "sync"],
    ]
    assert [run.result(timeout=5) for run in runs] == ["x resized", "sent to x"]
    producer.close()
