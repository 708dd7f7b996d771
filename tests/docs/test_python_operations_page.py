# SPDX-License-Identifier: MIT
"""The program of `docs/how-to/python-operations.md` does what the page shows."""

import asyncio
from typing import Any

import pytest

from tests.cli.console import byrote
from tests.docs.test_readme import blocks
from tests.support import Db, enqueue

SHOWN = """\
['operations_page.send_email']
[('mail', 1)]
True True
True True False
[]
No run 'nope'. It may have been pruned, or be in another database.
"""


def test_the_programs_of_the_page_run(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BYROTE_DATABASE_URL", url)
    names: dict[str, Any] = {"__name__": "operations_page"}
    for block in blocks("docs/how-to/python-operations.md", "python"):
        exec(block, names)  # noqa: S102 -- our own page.

    async def serve() -> int:
        async with names["lifespan"](None):
            return len(await names["app"].aruns())

    assert asyncio.run(serve()) == 1
    assert capsys.readouterr().out == SHOWN


def test_the_commands_of_the_page_run(db: Db, url: str) -> None:
    enqueue(db, 2, task="send_email", queue="mail")
    db.execute("insert into byrote_queues (queue_name) values ('mail')")
    [block] = blocks("docs/how-to/python-operations.md", "sh")
    shown = [byrote(*line.split()[1:], url=url) for line in block.splitlines()]

    assert [one.code for one in shown] == [0] * 5
    assert [one.out for one in shown[3:]] == [
        "2 runs cancelled.\n",
        "mail keeps ended runs for 7d and dead letters for 180d.\n",
    ]
