# SPDX-License-Identifier: MIT
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.core.errors import BadOption
from byrote.core.json.diff import diff
from byrote.core.json.paths import read_path, read_paths, without

pytestmark = pytest.mark.pure

VALUE = {"at": 1, "items": [{"id": 1, "n": 2}, {"id": 3}], "odd key": {"a.b": 5}, "0": 7}


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("$.at", {"at": ...}),
        ("$.items[0].id", {"items": [{"n": 2}, {"id": 3}]}),
        ("$.items[*].id", {"items": [{"n": 2}, {}]}),
        ("$.items[1]", {"items": [{"id": 1, "n": 2}, None]}),
        ("$.*", dict.fromkeys(VALUE, ...)),
        ('$["odd key"]["a.b"]', {"odd key": {}}),
        ("/items/1/id", {"items": [{"id": 1, "n": 2}, {}]}),
        ("/0", {"0": ...}),
        ("$.at.deeper", {}),
        ("$.missing", {}),
    ],
)
def test_a_path_takes_away_what_it_names_and_nothing_else(path: str, changes: Any) -> None:
    expected = {name: part for name, part in (VALUE | changes).items() if part is not ...}

    assert without(VALUE, [read_path(path)]) == expected


@pytest.mark.parametrize("path", ["", "at", "$", "$.", "$..a", "$.a[", "$.a[x]", '$["a]', "$a"])
def test_a_malformed_path_is_refused_with_an_example(path: str) -> None:
    with pytest.raises(BadOption, match=r"\$\."):
        read_path(path)


def test_one_path_is_not_mistaken_for_many() -> None:
    with pytest.raises(BadOption, match="in a list"):
        read_paths("$.at")


OBJECTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict))


@given(OBJECTS, OBJECTS)
def test_nothing_differs_once_every_path_that_was_printed_is_ignored(old: Any, new: Any) -> None:
    paths = [read_path(change.path) for change in diff(old, new, limit=1_000).changes]

    assert not diff(without(old, paths), without(new, paths))
