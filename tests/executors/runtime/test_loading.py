# SPDX-License-Identifier: MIT
import pytest

from byrote.core.errors import BadOption
from byrote.executors.runtime.loading import load_app

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("shop.py:app", "'shop.py:app' names a file, not a module; write shop:app."),
        ("./shop/tasks.py", "'./shop/tasks.py' names a file, not a module; write shop.tasks:app."),
        (
            "tests.tasks.crashes:ap",
            "The module tests.tasks.crashes has no 'ap'; did you mean tests.tasks.crashes:app?",
        ),
        (
            "tests.programs:app",
            (
                "The module tests.programs has no 'app'; define an app there with "
                "`app = byrote.App()`."
            ),
        ),
        (
            "tests.programs:pytest",
            "tests.programs:pytest is not a Byrote app; define one with `app = byrote.App()`.",
        ),
    ],
)
def test_a_wrong_name_of_an_app_is_refused_with_the_right_one(path: str, message: str) -> None:
    with pytest.raises(BadOption) as refused:
        load_app(path)

    assert str(refused.value) == message
