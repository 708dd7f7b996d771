# SPDX-License-Identifier: MIT
"""No message shows the password of a URL that it quotes."""

import pytest

from byrote.core.errors import BadOption, ServiceUnreachable
from byrote.core.text.redaction import EXAMPLE, redacted

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:hush@h:5/d", "postgresql://me:***@h:5/d"),
        ("at postgresql+asyncpg://me:hush@h/d now", "at postgresql+asyncpg://me:***@h/d now"),
        ("postgresql://:hush@h/d", "postgresql://:***@h/d"),
        ("postgresql://me:hu sh@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me:hu@sh@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me:hu/sh@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me:hu:sh@h/d", "postgresql://me:***@h/d"),
        ("postgresql://me:12hush@h/d", "postgresql://me:***@h/d"),
        ("https://me:hush@h: refused", "https://me:***@h: refused"),
        ("postgresql://h/d?password=hush&x=1", "postgresql://h/d?password=***&x=1"),
        ("host=h password=hush user=me", "host=h password=*** user=me"),
        ("host=h password='hu \\' sh' user=me", "host=h password=*** user=me"),
        ("host=h PASSWORD = hush", "host=h PASSWORD = ***"),
        ("sslpassword=hush", "sslpassword=***"),
    ],
)
def test_a_password_is_replaced_by_stars(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8700/v1/runs: no task t@2",
        "http://127.0.0.1:8700 refused t@2",
        "postgresql://[::1]:5432/d has t@2",
        "postgresql://me@h/d",
        f"Write {EXAMPLE}; write @ as %40",
        "Write postgresql://h:5432, t@2",
    ],
)
def test_text_without_a_password_is_unchanged(text: str) -> None:
    assert redacted(text) == text


def test_every_error_of_ours_is_redacted() -> None:
    for kind in (BadOption, ServiceUnreachable):
        assert "hush" not in str(kind("https://me:hush@h did not answer"))
