# SPDX-License-Identifier: MIT
"""Signals, remembered results, environments and artifacts are held against their hashes too."""

import psycopg
import pytest

from byrote.assembly.identity import new_id
from byrote.core.json.codec import pack
from byrote.core.replay.provenance import provenance_of
from byrote.store import queries
from byrote.store.runners.sync import fetch
from byrote.store.verify import verify_on
from byrote.testing import FakeClock
from tests.store.enqueue.test_memo import ask, compute, spec
from tests.store.steps.test_artifact import keep
from tests.support import Db, claim, enqueue

EDIT_BLOB = """
alter table byrote_artifact_blobs drop constraint byrote_blob_is_sound;
update byrote_artifact_blobs set data = 'z';
"""
PLANTED = {
    "a signal": ("update byrote_signals set payload_json = '[9]'", "signal go does not match"),
    "a signal and its hash": (
        "update byrote_signals set payload_json = '1', payload_hash = sha256('1')",
        "the step that received it has another payload",
    ),
    "a remembered result": ("update byrote_memo set return_json = '43'", "memo t does not match"),
    "a remembered result and its hash": (
        "update byrote_memo set return_json = '43', result_hash = sha256('43')",
        "the run it came from has another result",
    ),
    "a remembered result of another spec": (
        "update byrote_memo set spec_hash = sha256('1')",
        "the run it came from has another result",
    ),
    "an environment": (
        """update byrote_provenance set doc = '{"python": "2.7"}'""",
        "does not match its hash",
    ),
    "an artifact's content": (
        EDIT_BLOB,
        "artifact report: its content is missing or different",
    ),
    "an artifact without content": (
        "delete from byrote_artifact_blobs",
        "artifact report: its content is missing or different",
    ),
}


@pytest.fixture
def stored(db: Db, clock: FakeClock) -> str:
    """A run that received a signal and stored an artifact, a memo, and an environment."""
    ask(db, spec())
    compute(db)
    found = provenance_of({"python": {"version": "3.13.0"}, "seed": 1.5, "größe": ["é", None]})
    fetch(db, queries.register_provenance(digest=found.digest, doc=found.text))
    [run_id] = enqueue(db)
    [lease] = claim(db)
    keep(db, lease, name="report")
    for payload in ({"n": 1.0}, "unheard"):
        fetch(db, queries.signal(run_id, new_id(), "go", pack(payload)))
    wait = {"id": run_id, "token": lease.token, "sequence": 1, "kind": "event", "name": "go"}
    fetch(db, queries.step([wait]))
    assert db.execute("select count(*) from byrote_signals where taken_by = 1").fetchone() == (1,)
    return run_id


@pytest.mark.parametrize("case", PLANTED)
def test_what_was_edited_is_found(db: Db, stored: str, case: str) -> None:
    statement, said = PLANTED[case]
    with db.transaction() as planted:
        assert verify_on(db).findings == []
        db.execute(statement)  # type: ignore[call-overload]
        found = verify_on(db).findings
        raise psycopg.Rollback(planted)

    assert "results" in {finding.check for finding in found}
    assert any(said in finding.message for finding in found), found
