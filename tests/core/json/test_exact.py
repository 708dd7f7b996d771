# SPDX-License-Identifier: MIT
from typing import Any

import pytest

from byrote.core.json.codec import pack, unpack
from byrote.core.json.exact import exact_form

pytestmark = pytest.mark.pure

CONFUSABLE = [
    (1, 1.0),
    (0, -0.0),
    (0.0, -0.0),
    (10**16, 1e16),
    ([{"n": 2}], [{"n": 2.0}]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
]


@pytest.mark.parametrize(("one", "other"), CONFUSABLE)
def test_arguments_with_one_canonical_form_have_two_exact_ones(one: Any, other: Any) -> None:
    assert pack(one).digest == pack(other).digest
    assert exact_form([one], {}) != exact_form([other], {})
    assert exact_form([], {"n": one}) != exact_form([], {"n": other})
    assert exact_form([one], {}) == exact_form(unpack(pack([one]).text), {})
