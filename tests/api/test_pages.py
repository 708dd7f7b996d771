# SPDX-License-Identifier: MIT
import re

import byrote
import byrote.sdk
import byrote.testing
from tests.api.pages import PAGE, SECTIONS, page


def test_the_page_of_the_python_api_agrees_with_the_code() -> None:
    """If this fails: make docs."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_public_name_is_on_the_page() -> None:
    listed = {name for _, _, names in SECTIONS for name in names}

    assert set(byrote.__all__) | set(byrote.testing.__all__) | set(byrote.sdk.__all__) == listed


def test_everything_on_the_page_is_described() -> None:
    text = page()

    assert re.findall(r"^\|.*\|  \|$", text, re.MULTILINE) == []
    assert (
        re.findall(r"^####? `[^`]+`\n\n(?:```python\n[^`]*```\n)?\n?(?=#)", text, re.MULTILINE)
        == []
    )
