# SPDX-License-Identifier: MIT
"""Links that are taken out at the end of the chain are found by the duty's note and a kept head."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import PurePath

import pytest

from byrote.core.errors import BadOption
from byrote.core.log.chain import Chained, Head, judge_chain, read_head, written_head
from byrote.store.connect import DatabaseAddress
from byrote.store.verify import verify
from tests.store.verify.test_verify import chain_all, found
from tests.support import Db, claim, enqueue, finish, success

FORGET_NOTE = "update byrote_duties set cursor = null where duty = 'chain'"
ALL = "delete from byrote_chain"
LAST = "delete from byrote_chain where link = (select max(link) from byrote_chain)"
NEWS = "update byrote_events set worker = 'eve' where kind = 'Claimed'"
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


def head_of(address: DatabaseAddress) -> Head:
    head = verify(address).head
    assert head is not None
    return head


@pytest.fixture
def links(db: Db) -> int:
    """A log of a few links; returns the number of the last one."""
    enqueue(db, 3)
    finish(db, [success(lease) for lease in claim(db, 2)])
    chain_all(db, limit=1)
    row = db.execute("select max(link) from byrote_chain").fetchone()
    assert row is not None
    assert row[0] >= 3
    return int(row[0])


def test_the_head_is_reported_and_stays_in_a_chain_that_grows(
    db: Db, address: DatabaseAddress, links: int
) -> None:
    head = head_of(address)
    enqueue(db, 1)
    assert verify(address, kept=head).unchained == 1
    chain_all(db)
    report = verify(address, kept=head)

    assert head.link == links
    assert (report.sound, report.unchained) == (True, 0)
    assert report.head is not None
    assert report.head.link > head.link


@pytest.mark.parametrize("statement", [LAST, ALL], ids=["the last", "all"])
def test_links_taken_out_are_found_without_a_kept_head(
    db: Db, address: DatabaseAddress, links: int, *, statement: str
) -> None:
    db.execute(statement)  # type: ignore[call-overload]
    [finding] = verify(address).findings

    assert finding.check == "chain"
    assert f"{links} w" in finding.message


@pytest.mark.parametrize("statement", [LAST, ALL], ids=["the last", "all"])
def test_links_taken_out_with_the_note_are_found_by_a_kept_head(
    db: Db, address: DatabaseAddress, links: int, *, statement: str
) -> None:
    head = head_of(address)
    db.execute(statement)  # type: ignore[call-overload]
    db.execute(FORGET_NOTE)
    assert verify(address).sound
    report = verify(address, kept=head)

    assert found(report) == {"chain"}
    assert f"{links} w" in report.findings[0].message


def test_a_chain_made_anew_over_an_edited_log_is_found_by_a_kept_head(
    db: Db, address: DatabaseAddress, links: int
) -> None:
    """An attacker who can write everything can make a sound chain, but not the stored hash."""
    head = head_of(address)
    for statement in (NEWS, "update byrote_task_runs set leased_by = 'eve'", ALL):
        db.execute(statement)  # type: ignore[call-overload]
    chain_all(db, limit=1)
    assert "chain" not in found(verify(address))
    report = verify(address, kept=head)

    assert links == head.link
    assert any("made anew" in finding.message for finding in report.findings)


@pytest.mark.parametrize(
    ("last", "noted", "first", "there", "said"),
    [
        (5, 5, 1, "aa", None),
        (9, 9, 5, "aa", None),
        (None, None, None, None, "links 1 to 5 were taken out since the kept head"),
        (4, None, 1, None, "link 5 was taken out since"),
        (9, 9, 7, None, "cannot be compared: links before 7 went"),
        (9, 9, 5, "bb", "made anew"),
        (9, 9, 4, None, "made anew"),
        (5, 7, 1, "aa", "links 6 to 7 were taken out after they were made"),
    ],
)
def test_a_kept_head_must_be_in_the_chain(
    last: int | None, noted: int | None, first: int | None, *, there: str | None, said: str | None
) -> None:
    kept = Head(link=5, hash="aa", linked_at=NOON)
    head = None if last is None else Head(link=last, hash="cc", linked_at=NOON)
    chained = Chained(head=head, noted=noted, first=first, there=there, unchained=0)
    told = [finding.message for finding in judge_chain(chained, kept)]

    assert len(told) == (0 if said is None else 1)
    assert said is None or said in told[0]


def test_a_head_is_read_as_it_was_written() -> None:
    head = Head(link=7, hash="ab" * 32, linked_at=NOON)

    assert read_head(written_head(head), PurePath("f")) == head


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text[:0],
        lambda text: b"[" + text + b"]",
        lambda text: text[:40],
        lambda text: text.replace(b"ab", b"zz"),
        lambda text: text.replace(b"ab", b"", 1),
        lambda text: text.replace(b"7,", b"0,"),
        lambda text: text.replace(b"1\n", b"2\n"),
        lambda text: b"\xff" + text,
    ],
)
def test_a_malformed_head_is_refused(edit: Callable[[bytes], bytes]) -> None:
    text = written_head(Head(link=7, hash="ab" * 32, linked_at=NOON))
    with pytest.raises(BadOption, match="f does not hold the head of a chain"):
        read_head(edit(text), PurePath("f"))
