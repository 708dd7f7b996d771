# SPDX-License-Identifier: MIT
"""docs/how-to/schedules.md works as written."""

import shlex
import signal
from pathlib import Path

import psycopg

from tests.docs.test_readme import ROOT, blocks, byrote
from tests.support import until

PAGE = "docs/how-to/schedules.md"
PULSE = """select return_json from byrote_runs
           where labels ->> 'schedule' = 'pulse' and status = 'SUCCESSFUL'"""


def commands() -> list[list[str]]:
    """The commands of the page, without their comments."""
    lines = (ROOT / PAGE).read_text(encoding="utf-8").splitlines()
    told = [line.strip() for line in lines if line.startswith("    byrote schedules ")]
    return [shlex.split(line, comments=True)[1:] for line in told]


def test_the_app_of_the_page_ticks(url: str, tmp_path: Path) -> None:
    [example] = blocks(PAGE, "python")
    (tmp_path / "shop.py").write_text(example, encoding="utf-8")
    worker = byrote("worker", "shop:app", folder=tmp_path, url=url)
    try:
        with psycopg.connect(url, autocommit=True) as db:
            [text] = until(lambda: db.execute(PULSE).fetchone())
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=60)

    assert text == '"the last 0 days"'


def test_the_commands_of_the_page_work_in_their_order(url: str, tmp_path: Path) -> None:
    told = commands()
    assert len(told) == 8
    for words in told:
        done = byrote(*words, folder=tmp_path, url=url)
        done.communicate(timeout=60)
        assert done.returncode == 0, words
