# SPDX-License-Identifier: MIT
import pytest

from tests.cli.pages import PAGE, commands, help_of, page


def test_the_page_of_commands_has_the_text_of_help() -> None:
    """If this fails: python -m tests.cli.pages."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_help_has_an_example_or_leads_to_commands_that_do(words: tuple[str, ...]) -> None:
    said = help_of(words)

    assert "Example" in said or "Commands:" in said
    assert "-h, --help" in said
