# SPDX-License-Identifier: MIT
from byrote.testing import FakeClock
from tests.cli.console import byrote
from tests.store.runs.test_progress import tell
from tests.store.steps.test_step import leased
from tests.support import Db, finish, success


def test_show_prints_progress_and_the_estimated_end(url: str, db: Db, clock: FakeClock) -> None:
    lease = leased(db)
    assert "progress" not in byrote("runs", "show", lease.id, url=url).out
    tell(db, lease, 100, 1_000)
    clock.advance(seconds=20)
    tell(db, lease, 300, 1_000, "importing\x07", {"file": "a"})
    said = byrote("runs", "show", lease.id, url=url).out
    told = byrote("runs", "show", lease.id, "--json", url=url).object["progress"]

    assert "30 % (300 of 1,000), importing" in said
    assert "\x07" not in said
    assert "an estimate" in said
    assert (told["percent"], told["data"], told["retrying"]) == (30.0, {"file": "a"}, False)
    assert told["eta"].endswith("Z")


def test_top_lists_running_runs_with_progress(url: str, db: Db) -> None:
    lease = leased(db)
    tell(db, lease, 2, 5, "mixing")
    said = byrote("top", "--once", url=url).out
    [told] = byrote("top", "--once", "--json", url=url).object["stats"]["under_way"]
    finish(db, [success(lease)])

    assert "40 % (2 of 5), mixing" in said
    assert (told["id"], told["queue"], told["progress"]["percent"]) == (lease.id, "default", 40.0)
    assert "mixing" not in byrote("top", "--once", url=url).out
