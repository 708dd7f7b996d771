# SPDX-License-Identifier: MIT
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.core.json.codec import pack
from byrote.core.json.diff import Change, diff, same

pytestmark = pytest.mark.pure

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2, width=16)
    | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("a/~", max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        (1, 1.0, []),
        (0.0, -0.0, []),
        (1, True, [Change("", "changed", 1, True)]),
        (None, {}, [Change("", "changed", None, {})]),
        (10**22, 1e22, [Change("", "changed", 10**22, 1e22)]),
        ({"a": None}, {}, [Change("/a", "removed", old=None)]),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, [Change("/a~1b/~0", "changed", 1, 2)]),
        ([1, 2, 3], [0, 1, 2, 3], [Change("/0", "added", new=0)]),
        ([1, 2, 3], [1, 3], [Change("/1", "removed", old=2)]),
        ([1, [2], 3], [1, [5], 3], [Change("/1/0", "changed", 2, 5)]),
        ([1, 1], [1], [Change("/1", "removed", old=1)]),
    ],
)
def test_a_difference_is_reported_by_its_path(old: Any, new: Any, changes: list[Change]) -> None:
    assert diff(old, new).changes == changes


@given(old=JSON, new=JSON)
def test_nothing_differs_exactly_when_the_hashes_are_equal(old: Any, new: Any) -> None:
    alike = pack(old).digest == pack(new).digest

    assert bool(diff(old, new)) is not alike
    assert same(old, new) is alike


@given(value=JSON)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert not diff(value, value)


def test_a_list_of_differences_is_bounded_and_marked_as_cut() -> None:
    found = diff(list(range(500)), list(range(500, 0, -1)), limit=7)

    assert len(found.changes) == 7
    assert found.cut
    assert not diff({str(i): 0 for i in range(7)}, {str(i): 1 for i in range(7)}, limit=7).cut


def test_what_is_nested_as_deep_as_allowed_is_compared() -> None:
    old: Any = 1
    new: Any = 2
    for _ in range(250):
        old, new = [{"a": old}], [{"a": new}]

    assert [change.path for change in diff(old, new).changes] == ["/0/a" * 250]
