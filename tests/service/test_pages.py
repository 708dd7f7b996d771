# SPDX-License-Identifier: MIT
"""The reference page of messages agrees with the types."""

from tests.service import pages


def test_the_page_of_messages_is_up_to_date() -> None:
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page(), (
        "run `python -m tests.service.pages`"
    )


def test_no_meaning_is_left_of_a_field_that_is_gone() -> None:
    fields = {
        f"{name}.{field}"
        for name, schema in pages.described().items()
        for field in schema.get("properties", ())
    }

    assert set(pages.MEANINGS["fields"]) <= fields
