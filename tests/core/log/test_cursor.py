# SPDX-License-Identifier: MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.core.log.cursor import BEGINNING, BIGINT_MAX, Cursor

NUMBERS = st.integers(0, BIGINT_MAX)


@given(NUMBERS, NUMBERS, st.none() | st.integers(0, 10**9 - 1))
def test_a_cursor_is_read_from_its_text(xid: int, seq: int, ordinal: int | None) -> None:
    cursor = Cursor(xid, seq, ordinal)

    assert Cursor.parse(str(cursor)) == cursor


def test_zero_is_the_beginning() -> None:
    assert Cursor.parse("0") == BEGINNING


@pytest.mark.parametrize(
    "text",
    ["", "1", "1.", "1:2", "1.2.3.4", "a.1", "1.-1", "-1.1", "\u00b2.1", "1.2\n", f"1.{2**63}"],
)
def test_other_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a cursor.*4711\.812"):
        Cursor.parse(text)
