# SPDX-License-Identifier: MIT
"""docs/how-to/versions.md does what it says."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_readme import blocks, byrote
from tests.support import Db, run_of
from tests.worker.harness import send, spec


def test_old_versions_names_and_aliases_are_executed(
    url: str, db: Db, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "\n\n".join(blocks("docs/how-to/versions.md", "python"))
    (tmp_path / "shop.py").write_text(page, encoding="utf-8")
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    names: dict[str, Any] = {"__name__": "shop"}
    exec(page, names)  # noqa: S102 -- our own page.
    old, moved = send(db, spec("job", 7), spec("shop.mail.send", "ada"))
    new = names["job"].enqueue(8, "CHF").id
    byrote("worker", "shop:app", "--drain", folder=tmp_path, url=url).communicate(timeout=60)
    names["app"].close()

    results = [run_of(db, run_id).result for run_id in (old, new, moved)]
    assert results == ["7 EUR", "8 CHF", "ada"]
    assert names["send_email"].name == "shop.send_email"
