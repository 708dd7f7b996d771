# SPDX-License-Identifier: MIT
from typing import Any

import pytest

from byrote.executors.runtime.steps.call import args_hash
from tests.core.json.test_exact import CONFUSABLE

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(("one", "other"), CONFUSABLE)
def test_a_step_distinguishes_what_its_function_can(one: Any, other: Any) -> None:
    assert args_hash([one], {}) != args_hash([other], {})
    assert args_hash((), {"n": one}) != args_hash((), {"n": other})


def test_the_order_of_keyword_arguments_does_not_count() -> None:
    assert args_hash([], {"a": 1, "b": 2}) == args_hash([], {"b": 2, "a": 1})
