# SPDX-License-Identifier: MIT
"""One function chooses the statement that accepts specs, for every way to enqueue."""

import re
from pathlib import Path

import pytest

import byrote
from byrote.assembly.identity import new_id
from byrote.core.ports.script import run_script
from byrote.core.spec import Delivery, Spec, describe
from byrote.store.queries.enqueue import accept, until_accepted
from byrote.store.query import Query
from byrote.store.runners.sync import fetch
from tests.support import Db, count

CODES = {("remembered", 1): "c" * 64}
CHOSEN = re.compile(r"\b(queries\.|import [^\n]*)(enqueue_one|enqueue_memo)\b")


def spec(task: str = "t", key: str | None = None) -> Spec:
    return describe(task, 1, [], {}, delivery=Delivery(unique_key=key))


PLAIN, KEYED, REMEMBERED = spec(), spec(key="k"), spec("remembered")


@pytest.mark.parametrize(
    ("specs", "name"),
    [
        ([], "enqueue"),
        ([PLAIN], "enqueue_one"),
        ([PLAIN, PLAIN], "enqueue"),
        ([KEYED], "enqueue_unique"),
        ([PLAIN, KEYED], "enqueue_unique"),
        ([REMEMBERED], "enqueue_memo"),
        ([PLAIN, KEYED, REMEMBERED], "enqueue_memo"),
    ],
)
def test_the_cheapest_statement_is_chosen(db: Db, specs: list[Spec], name: str) -> None:
    """Whichever it is, the runs exist afterwards, and the moment is known."""
    query = accept([(new_id(), each) for each in specs], CODES)

    def send(sent: Query[object]) -> list[object]:
        return fetch(db, sent)

    accepted = run_script(until_accepted(query), send)

    assert query.name == name
    assert accepted.at is not None
    assert count(db, "byrote_task_runs") == len(specs)


def test_a_memo_costs_nothing_where_no_task_has_one() -> None:
    assert accept([(new_id(), REMEMBERED)]).name == "enqueue_one"


def test_no_other_module_chooses() -> None:
    root = Path(byrote.__file__).parent
    found = [str(file) for file in root.rglob("*.py") if CHOSEN.search(file.read_text())]

    assert found == []
