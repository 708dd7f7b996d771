# SPDX-License-Identifier: MIT
"""docs/how-to/progress.md works as written."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_readme import blocks, byrote


def test_the_example_reports_progress(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [task] = [block for block in blocks("docs/how-to/progress.md", "python") if "App()" in block]
    (tmp_path / "shop.py").write_text(task, encoding="utf-8")
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    names: dict[str, Any] = {"__name__": "shop"}
    exec(task, names)  # noqa: S102 -- our own page.
    run = names["import_rows"].enqueue(["a", "b", "c"])
    worker = byrote("worker", "shop:app", "--drain", folder=tmp_path, url=url)
    worker.communicate(timeout=60)
    told = run.refresh().progress
    names["app"].close()

    assert told is not None
    assert (told.percent, told.message, told.data) == (100.0, "importing", {"last": "c"})
