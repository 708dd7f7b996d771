# SPDX-License-Identifier: MIT
"""What every store promises a scribe."""

import hashlib
from typing import Any

import pytest

from byrote.assembly.identity import new_id
from byrote.core.json.codec import pack
from byrote.core.run import Leased
from byrote.store import queries
from byrote.store.runners.sync import fetch
from tests.contracts.store.parts import Db, Parts, expire
from tests.support import count, enqueue


def step(lease: Leased, sequence: int, value: Any) -> dict[str, Any]:
    packed = pack(value)
    return {
        "id": lease.id, "token": lease.token, "sequence": sequence, "kind": "step",
        "name": f"s{sequence}", "result": packed.text, "hash": packed.digest.hex(),
    }  # fmt: skip


def test_a_step_is_written_once_and_read_by_the_next_attempt(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = parts.claim()
    notes = parts.ledgers.note([step(lease, 1, {"a": 1.0}), step(lease, 2, None)])
    assert [(note.sequence, note.open, note.result_json) for note in notes] == [
        (1, False, '{"a":1.0}'),
        (2, False, "null"),
    ]
    expire(db, run_id)
    [again] = parts.claim()
    entries = parts.ledgers.load([again])

    assert [(entry.sequence, entry.kind, entry.name, entry.result_json) for entry in entries] == [
        (1, "step", "s1", '{"a":1.0}'),
        (2, "step", "s2", "null"),
    ]


def test_only_an_error_that_was_caught_is_read_by_the_next_attempt(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = parts.claim()
    failed, raised = step(lease, 1, {"class": "E"}), step(lease, 2, {"class": "E"})
    parts.ledgers.note([failed | {"kind": "raised"}, raised | {"kind": "raised"}])
    [noted] = parts.ledgers.note([failed | {"kind": "failed"}])
    expire(db, run_id)
    [again] = parts.claim()

    assert (noted.open, noted.result_json) == (False, '{"class":"E"}')
    assert [(line.sequence, line.kind) for line in parts.ledgers.load([again])] == [(1, "failed")]


def test_a_step_under_a_lost_lease_is_not_written(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [late] = parts.claim()
    expire(db, run_id)
    parts.claim()

    assert parts.ledgers.note([step(late, 1, "late")]) == []
    assert count(db, "byrote_steps") == 0


def test_a_wait_is_open_until_its_signal_comes(parts: Parts, db: Db) -> None:
    enqueue(db)
    [lease] = parts.claim()
    wait = {"id": lease.id, "token": lease.token, "sequence": 1, "kind": "event", "name": "paid"}
    [asked] = parts.ledgers.note([{**wait, "delay_us": None}])
    fetch(db, queries.signal(lease.id, new_id(), "paid", pack(None)))
    [told] = parts.ledgers.note([{**wait, "delay_us": None}])

    assert (asked.open, asked.result_json) == (True, None)
    assert (told.open, told.result_json) == (False, "null")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_step_whose_answer_is_lost_is_written_once(parts: Parts, db: Db, moment: str) -> None:
    enqueue(db)
    [lease] = parts.claim()
    parts.ledgers.note([step(lease, 1, 1)])
    fault = parts.break_next("note", moment)
    [note] = parts.ledgers.note([step(lease, 2, 2)])

    assert fault.happened.is_set()
    assert note.result_json == "2"
    assert count(db, "byrote_steps") == 2


def artifact(data: bytes, name: str = "a.txt") -> dict[str, Any]:
    digest, size = hashlib.sha256(data).digest(), len(data)
    return {
        "name": name, "media_type": "text/plain", "data": data, "digest": digest, "size": size,
        "location": "postgres",
    }  # fmt: skip


def test_an_artifact_is_kept_once_and_only_for_the_holder(parts: Parts, db: Db) -> None:
    [run_id] = enqueue(db)
    [lease] = parts.claim()
    kept = [parts.artifact_rows.keep(lease, artifact(data)) for data in (b"one", b"one", b"two")]
    expire(db, run_id)
    late = parts.artifact_rows.keep(lease, artifact(b"late", "b.txt"))

    assert [keeping.verdict for keeping in kept] == ["stored", "same", "taken"]
    assert (kept[0].media_type, kept[0].location, kept[0].at) == (
        "text/plain",
        "postgres",
        kept[1].at,
    )
    assert late.verdict not in {"stored", "same"}
    assert count(db, "byrote_artifacts") == 1
