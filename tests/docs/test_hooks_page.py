# SPDX-License-Identifier: MIT
"""docs/how-to/hooks.md works as written."""

from pathlib import Path

import pytest

from byrote import App
from tests.docs.test_readme import blocks, byrote
from tests.support import Db


@pytest.mark.parametrize("executor", ["hand", "inline", "command"])
def test_tasks_run_inside_the_tenant_of_their_run(
    url: str, db: Db, tmp_path: Path, executor: str
) -> None:
    [page] = blocks("docs/how-to/hooks.md", "python")
    (tmp_path / "shop.py").write_text(page, encoding="utf-8")
    app = App(url)
    tasks = [app.task(name=name)(lambda: None) for name in ("report", "areport")]
    runs = [task.using(labels={"tenant": "acme"}).enqueue() for task in tasks]
    words = ("worker", "shop:app", "--drain", "--executor", executor)
    byrote(*words, folder=tmp_path, url=url).communicate(timeout=60)

    assert [run.result(timeout=5) for run in runs] == ["acme", "acme"]
    app.close()
