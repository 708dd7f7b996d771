# SPDX-License-Identifier: MIT
"""One table names every end of an attempt; every surface uses its words."""

from typing import get_args

import pytest

import byrote.core.policy
from byrote.core import events
from byrote.core.log.fold import RULES
from byrote.core.log.kinds import MOVES, EventKind
from byrote.core.verdict import ENDS, STATISTICS
from byrote.service.verdicts import ALLOWED
from byrote.wire.leases import AcceptedAs, VerdictWord
from byrote.wire.messages import TaskStats


def test_every_verdict_has_one_end() -> None:
    verdicts = get_args(byrote.core.policy.Verdict.__value__)

    assert [end.verdict for end in ENDS] == list(verdicts)


@pytest.mark.parametrize("column", ["verdict", "letter", "word", "accepted_as", "kind"])
def test_no_two_ends_share_a_name(column: str) -> None:
    assert len({getattr(end, column) for end in ENDS}) == len(ENDS)


def test_the_wire_uses_the_words_of_the_table() -> None:
    words = [end.word for end in ENDS]

    assert list(get_args(VerdictWord.__value__)) == [*words, "judge"]
    assert list(get_args(AcceptedAs.__value__)) == [*(end.accepted_as for end in ENDS), "already"]
    assert set().union(*ALLOWED.values()) == set(words)


def test_the_worker_emits_an_event_named_as_the_kind_in_the_log() -> None:
    for end in ENDS:
        assert issubclass(getattr(events, end.kind), events.RunEvent)
    assert issubclass(getattr(events, EventKind.LOST), events.Event)


def test_the_word_of_the_reply_is_the_kind_in_lower_case() -> None:
    assert [end.accepted_as for end in ENDS] == [end.kind.lower() for end in ENDS]


def test_every_statistic_is_a_field_of_the_reply() -> None:
    assert set(STATISTICS.values()) <= set(TaskStats.__struct_fields__)


def test_every_kind_that_moves_a_run_has_a_rule() -> None:
    assert set(RULES) == MOVES
    assert {str(kind) for kind in MOVES} == set(RULES)
