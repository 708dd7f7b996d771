# SPDX-License-Identifier: MIT
"""docs/how-to/unserved.md works as written."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_readme import blocks, byrote
from tests.support import Db, run_of
from tests.worker.harness import send_one, spec


def test_runs_of_the_old_version_are_executed_by_the_old_function(
    url: str, db: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [task] = blocks("docs/how-to/unserved.md", "python")
    (tmp_path / "shop.py").write_text(task, encoding="utf-8")
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    names: dict[str, Any] = {"__name__": "shop"}
    exec(task, names)  # noqa: S102 -- our own page.
    old = send_one(db, spec("charge", 7, 100))
    new = names["charge"].enqueue(8, 200, "CHF").id
    byrote("worker", "shop:app", "--drain", folder=tmp_path, url=url).communicate(timeout=60)
    names["app"].close()

    assert [run_of(db, run_id).result for run_id in (old, new)] == ["7: 100 EUR", "8: 200 CHF"]
