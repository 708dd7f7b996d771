# SPDX-License-Identifier: MIT
from tests.cli.console import byrote
from tests.support import Db, claim, enqueue, finish, success


def test_a_sound_database_passes(url: str, db: Db) -> None:
    enqueue(db, 3)
    finish(db, [success(lease) for lease in claim(db, 2)])
    told = byrote("verify", url=url)

    assert told.code == 0
    assert "ok    leases" in told.out
    assert told.out.endswith("3 runs and 7 events were read.\n")
    assert byrote("verify", "--json", url=url).object["sound"] is True


def test_a_database_that_was_tampered_with_fails_and_the_run_is_named(url: str, db: Db) -> None:
    [run_id] = enqueue(db)
    finish(db, [success(lease, "1") for lease in claim(db)])
    db.execute("update byrote_task_runs set return_json = '2'")
    told, as_json = byrote("verify", url=url), byrote("verify", "--json", url=url)

    assert (told.code, as_json.code) == (3, 3)
    assert f"results: {run_id}: the result does not match its hash" in told.out
    assert as_json.object["counts"]["results"] == 1
    assert as_json.object["findings"][0]["run"] == run_id


def test_a_database_without_our_schema_is_no_sound_one(bare_url: str) -> None:
    told = byrote("verify", "--json", url=bare_url)

    assert told.code == 3
    assert "byrote migrate" in told.object["findings"][0]["said"]
