# SPDX-License-Identifier: MIT
"""The migrated examples of the pages "Migrate from …" run as plain apps."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_readme import blocks, byrote

PAGES = ("celery", "rq", "dramatiq", "procrastinate")


def example(library: str, kind: str) -> str:
    """The block of a page that begins with this comment."""
    page = f"docs/how-to/from-{library}.md"
    [found] = [text for text in blocks(page, "python") if text.startswith(f"# {kind}, after\n")]
    return found


@pytest.mark.parametrize("library", PAGES)
def test_the_migrated_task_runs_and_is_tried_again(
    library: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(example(library, "shop.py"), encoding="utf-8")
    (tmp_path / "callers.py").write_text(example(library, "callers"), encoding="utf-8")
    environment = os.environ | {"BYROTE_DATABASE_URL": url}
    subprocess.run([sys.executable, "callers.py"], cwd=tmp_path, env=environment, check=True)
    names: dict[str, Any] = {"__name__": "shop"}
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    exec(example(library, "shop.py"), names)  # noqa: S102 -- our own page.
    with names["app"] as app:
        busy = names["send_receipt"].enqueue(9, "eve@busy.example")
        worker = byrote("worker", "shop:app", "--hands", "1", folder=tmp_path, url=url)
        try:
            text = busy.result(timeout=60)
        finally:
            worker.terminate()
            worker.communicate(timeout=60)
        [first, later, again] = sorted(app.runs(), key=lambda run: run.enqueued_at)

    assert text == "receipt 9 sent to eve@busy.example"
    assert (first.status, first.queue, first.attempts) == ("SUCCESSFUL", "mail", 1)
    assert later.status == "WAITING"
    assert (again.status, again.attempts) == ("SUCCESSFUL", 2)


@pytest.mark.parametrize("library", PAGES)
def test_both_ways_to_write_the_task_are_python(library: str) -> None:
    found = blocks(f"docs/how-to/from-{library}.md", "python")

    assert any(text.startswith("# before\n") for text in found)
    for text in found:
        # Top-level `await`, as in the documentation of async libraries.
        body = "\n".join(f"    {line}" for line in text.splitlines())
        compile(f"async def page():\n{body}\n", library, "exec")
