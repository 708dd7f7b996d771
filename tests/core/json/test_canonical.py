# SPDX-License-Identifier: MIT
import math
import struct

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from byrote.core.json.canonical import canonical, float_text

pytestmark = pytest.mark.pure

SAFE = 2**53 - 1
# Keys that meet where UTF-8 and UTF-16 sort differently.
KEYS = st.text() | st.text(alphabet="a\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=3)


def documents(integers: st.SearchStrategy[int]) -> st.SearchStrategy[object]:
    floats = st.floats(allow_nan=False, allow_infinity=False)
    scalars = st.none() | st.booleans() | integers | floats | st.text()
    return st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))


@given(documents(st.integers(-SAFE, SAFE)))
def test_it_is_rfc_8785_where_rfc_8785_is_defined(value: object) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.integers(0, 2**64 - 1))
@example(0x0000000000000001)
@example(0x7FEFFFFFFFFFFFFF)
def test_any_finite_float_is_written_as_rfc_8785_and_reads_back(bits: int) -> None:
    number = struct.unpack(">d", struct.pack(">Q", bits))[0]
    if math.isfinite(number):
        text = float_text(number)

        assert text.encode() == rfc8785.dumps(number)
        assert float(text) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (-1.5, "-1.5"),
        (1e16, "10000000000000000"),
        (2.0**60, "1152921504606847000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.25e22, "1.25e+22"),
        (1e-6, "0.000001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (-1.7976931348623157e308, "-1.7976931348623157e+308"),
    ],
)
def test_floats_are_written_as_ecmascript_writes_them(number: float, text: str) -> None:
    assert float_text(number) == text


@given(st.integers(1 - 10**4300, 10**4300 - 1))
@example(2**53 + 1)
@example(10**21)
def test_integers_of_any_size_are_written_exactly(number: int) -> None:
    assert canonical(number) == str(number).encode()


@given(st.integers(-(2**53), 2**53))
def test_an_integer_and_its_float_share_a_form_up_to_2_to_the_53(number: int) -> None:
    assert canonical(float(number)) == canonical(number)


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    members = {"\uffff": 1, "\ue000": 2, "\U00010000": 3, "b": 4, "": 5}

    assert canonical(members) == '{"":5,"b":4,"\U00010000":3,"\ue000":2,"\uffff":1}'.encode()


@pytest.mark.parametrize(
    "value", [(1,), b"x", {1: 2}, {"a": {1}}, math.nan, [math.inf], "\ud800", {"\ud800": 1}]
)
def test_what_is_not_plain_json_has_no_canonical_form(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        canonical(value)


def test_deep_nesting_needs_no_deep_stack() -> None:
    value: object = 1
    for _ in range(50_000):
        value = [value]

    assert canonical(value) == b"[" * 50_000 + b"1" + b"]" * 50_000
