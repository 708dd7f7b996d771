# SPDX-License-Identifier: MIT
"""P8, by property: folding all events of a run results in its row, column by column."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import byrote.store
from byrote.core.log.fold import RULES, fold_all
from byrote.core.log.kinds import MOVES, EventKind
from byrote.core.verdict import STATISTICS
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.testing import FakeClock
from tests.store.verify.walker import Walker
from tests.support import Db, claim, enqueue, row_of

SAME = (
    "status", "wait_reason", "moves", "attempts", "charged", "losses", "leased_by", "leased_until",
    "enqueued_at", "started_at", "last_attempted_at", "cancel_requested_at", "finished_at",
    "spec_hash", "result_hash",
)  # fmt: skip


def folded(db: Db, run_id: str) -> dict[str, Any]:
    state = fold_all(fetch(db, queries.run_history(run_id)))
    fields = msgspec.structs.asdict(state)
    token, due = fields["lease_token"], fields["due"]
    waits = {"run_after": due} if state.status == "WAITING" else {}
    return {name: fields[name] for name in SAME} | {"lease_token": token} | waits


def of_row(db: Db, run_id: str) -> dict[str, Any]:
    row = row_of(db, run_id)
    token = row["lease_token"]
    kept = {name: row[name] for name in SAME}
    waits = {"run_after": row["run_after"]} if row["status"] == "WAITING" else {}
    return kept | {"lease_token": token and str(token)} | waits


@pytest.mark.parametrize("seed", range(6))
def test_folding_all_events_of_a_run_returns_its_row(db: Db, clock: FakeClock, seed: int) -> None:
    walker = Walker(db, clock, 7_000 + seed)
    for _ in range(150):
        walker.step()

    assert len(walker.ids) > 20
    for run_id in walker.ids:
        assert folded(db, run_id) == of_row(db, run_id), run_id


def test_a_run_of_a_quiet_queue_is_known_again_after_its_next_event(
    db: Db, clock: FakeClock
) -> None:
    """The renewal was not logged, so the lease is unknown."""
    db.execute("insert into byrote_queues (queue_name, events) values ('default', 'few')")
    [run_id] = enqueue(db)
    [lease] = claim(db)
    clock.advance(seconds=20)
    fetch(db, queries.renew([lease], lease_for=clock.now - clock.now))
    fetch(db, queries.cancel([run_id]))
    told = fetch(db, queries.run_history(run_id))
    state = fold_all(told)

    assert [event.kind for event in told] == ["Enqueued", "Claimed", "CancelRequested"]
    assert [event.move for event in told] == [1, 2, 4]
    assert (state.status, state.leased_until) == ("RUNNING", None)


def test_every_kind_that_a_statement_writes_has_a_rule() -> None:
    """A new kind of event without a rule would be folded into ignorance."""
    told = set()
    for path in (Path(byrote.store.__file__).parent / "sql").rglob("*.sql"):
        text = path.read_text(encoding="utf-8")
        for insert in re.findall(r"insert into byrote_events(.*?)\n\)", text, re.DOTALL):
            told |= set(re.findall(r"'([A-Z][a-z]\w+)'", insert))

    assert told == set(EventKind)
    assert set(RULES) == MOVES


def test_the_statistics_count_the_kinds_of_the_table() -> None:
    statement = Path(byrote.store.__file__).parent / "sql" / "stats" / "count_stats.sql"
    [kinds] = re.findall(
        r"where kind in \(('Enqueued'.*?)\)", statement.read_text(encoding="utf-8")
    )

    assert set(re.findall(r"'(\w+)'", kinds)) == set(STATISTICS)
