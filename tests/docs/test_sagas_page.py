# SPDX-License-Identifier: MIT
"""The saga of docs/how-to/sagas.md ends as the page states, in a real worker."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_readme import blocks, byrote

PAGE = "docs/how-to/sagas.md"


def test_the_saga_is_undone_once_although_its_second_attempt_could_book(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [program] = blocks(PAGE, "python")
    [end] = blocks(PAGE, "text")
    (tmp_path / "trips.py").write_text(program, encoding="utf-8")
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    names: dict[str, Any] = {"__name__": "trips"}
    exec(program, names)  # noqa: S102 -- our own page.
    with names["app"]:
        run = names["book"].enqueue(1)
        # One hand, so that every attempt sees the same systems.
        worker = byrote("worker", "trips:app", "--hands", "1", folder=tmp_path, url=url)
        try:
            ledger = run.result(timeout=60)
        finally:
            worker.terminate()
            worker.communicate(timeout=60)
        attempts = run.refresh().attempts

    assert ledger == end.splitlines()
    assert attempts == 2


@pytest.mark.pure
def test_the_saga_is_the_program_of_the_trial() -> None:
    """The lines that ended half undone: an `except` around steps, and an undo in steps."""
    [program] = blocks(PAGE, "python")

    assert re.search(r"try:\n +f = ctx\.step\(\"flight\", book_flight, t\)", program)
    assert "for name, *call in reversed(undo):\n            ctx.step(name, *call)" in program
