# SPDX-License-Identifier: MIT
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.core.duration import DURATION_MAX, duration, micros, spoken

pytestmark = pytest.mark.pure

PEOPLE_WRITE = {
    "30s": timedelta(seconds=30),
    "1h30m": timedelta(minutes=90),
    "250ms": timedelta(milliseconds=250),
    "1.5h": timedelta(minutes=90),
    "2w": timedelta(weeks=2),
    "7d": timedelta(days=7),
    "10us": timedelta(microseconds=10),
    "0s": timedelta(),
    "5": timedelta(seconds=5),
    "0.25": timedelta(milliseconds=250),
}


@pytest.mark.parametrize(("text", "length"), PEOPLE_WRITE.items())
def test_durations_are_read_as_people_write_them(text: str, length: timedelta) -> None:
    assert duration(text) == length


@pytest.mark.parametrize("value", [timedelta(seconds=3), 3, 3.0, "3", "3s"])
def test_numbers_are_seconds(value: Any) -> None:
    assert duration(value) == timedelta(seconds=3)


NONSENSE = ["", "soon", "1x", "-1s", "1h 30m", ".", "s", "1e3", "1hh", "²", "1.2.3"]


@pytest.mark.parametrize("value", [*NONSENSE, True, None, b"1s", float("nan"), float("inf"), -1])
def test_nonsense_is_refused_with_an_example(value: Any) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration(value)


@pytest.mark.parametrize("value", ["99999999999999d", "9" * 400 + "s", "9" * 400, 1e300, "37000d"])
def test_what_is_too_long_is_refused_and_does_not_overflow(value: Any) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration(value)


@given(st.text(alphabet="0123456789.hmsduw ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        length = duration(text)
    except ValueError:
        return
    assert timedelta() <= length <= DURATION_MAX


@given(st.timedeltas(timedelta(), DURATION_MAX))
def test_a_duration_spoken_is_read_back(length: timedelta) -> None:
    assert duration(spoken(length)) == length
    assert timedelta(microseconds=micros(length)) == length
