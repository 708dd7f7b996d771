# SPDX-License-Identifier: MIT
"""The pure parts: where a reader of the log stands, and what buckets say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.service import follow
from byrote.service.routes.stats import percentiles, seconds_of
from byrote.store.queries.log import Position


@given(st.integers(0, 2**63), st.integers(0, 2**62))
def test_a_position_comes_back_from_its_text(xid: int, seq: int) -> None:
    position = Position(str(xid), seq)

    assert follow.read(follow.written(position)) == position


@pytest.mark.parametrize("text", ["", "1", "1:2:3", "a:1", "1:-1", "-1:1", "²:1"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- which words it has is no matter.
        follow.read(text)


def test_a_bucket_stands_for_its_seconds_within_a_tenth() -> None:
    for bucket in range(30, 180):
        low, high = 2 ** (bucket / 4) / 1e6, 2 ** ((bucket + 1) / 4) / 1e6
        assert high / seconds_of(bucket) < 1.1
        assert seconds_of(bucket) / low < 1.1


def test_percentiles_are_where_that_many_lie_below() -> None:
    found = percentiles({40: 50, 60: 45, 80: 5})

    assert (found.p50, found.p95, found.p99) == (seconds_of(40), seconds_of(60), seconds_of(80))
    assert percentiles({}).p50 is None
