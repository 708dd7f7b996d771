# SPDX-License-Identifier: MIT
"""Runs that ended, and apps to replay them with."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from byrote import App, Run
from byrote.assembly.settings import Settings
from byrote.assembly.worker import build_worker
from byrote.core.spec import Delivery, describe
from tests.faults.roles import role  # noqa: F401 -- a fixture.
from tests.support import Db, run_of
from tests.tasks import replayed, replayed_changed
from tests.worker.harness import Marks, send, start_worker  # noqa: F401 -- a fixture.

APP = "tests.tasks.replayed:app"
CHANGED = "tests.tasks.replayed_changed:app"

type Execute = Callable[..., list[Run]]


def drain(url: str, folder: Path, **settings: Any) -> None:
    """Execute everything that is due, in this process."""
    settings = {"executor": "inline", "artifacts": str(folder / "kept")} | settings
    wanted = Settings(database_url=url, **settings)
    build_worker(APP, wanted, emit=lambda _events: None, drain=True).run()


@pytest.fixture
def execute(url: str, db: Db, tmp_path: Path) -> Execute:
    """Enqueues runs of tasks by name and arguments, and has them executed."""

    def ended(
        *calls: tuple[str, list[Any]], version: int = 1, executor: str = "inline", **delivery: Any
    ) -> list[Run]:
        how = Delivery(**delivery)
        ids = send(db, *(describe(task, version, args, {}, delivery=how) for task, args in calls))
        drain(url, tmp_path, executor=executor)
        return [run_of(db, run_id) for run_id in ids]

    return ended


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


@pytest.fixture
def here(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """The app whose tasks the runs were of."""
    yield from _on(replayed.app, url, monkeypatch)


@pytest.fixture
def changed(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """The app after a change of the code."""
    yield from _on(replayed_changed.app, url, monkeypatch)


def _on(app: App, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    for cached in ("settings", "address", "store"):
        app.__dict__.pop(cached, None)
    monkeypatch.setattr(app, "url", url)
    yield app
    app.close()
