# SPDX-License-Identifier: MIT
"""How the admin shows values: JSON as it was stored, long texts truncated."""

from typing import Any

import msgspec
from django.utils.html import format_html
from django.utils.safestring import SafeString

from byrote.core.errors import BadPayload
from byrote.core.json.codec import unpack

TEXT_MAX = 20_000
"""Characters of one document that a page shows; a link leads to the whole document."""
ARGUMENT_MAX = 60
ARGUMENTS_MAX = 120
NOTE_MAX = 100


class Document(msgspec.Struct, frozen=True):
    """A stored JSON text as a page shows it."""

    text: str
    size: int
    cut: bool


def document(stored: str | None) -> Document | None:
    """A stored JSON text, indented; numbers and the order of keys stay as they were stored."""
    if stored is None:
        return None
    text = _indented(stored)
    return Document(cut(text, TEXT_MAX), len(stored.encode()), len(text) > TEXT_MAX)


def _indented(stored: str) -> str:
    try:
        return msgspec.json.format(stored, indent=2)
    except (msgspec.MsgspecError, RecursionError):
        return stored  # The row was altered to invalid JSON; show it as it is.


def cut(text: str, limit: int) -> str:
    """Truncate a text to `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def call(head: str, size: int) -> str:
    """The arguments of a spec in one line; for one longer than `head`, its size."""
    if len(head) < size:
        return f"{size:,} characters"
    try:
        spec = unpack(head)
        parts = [_argument(value) for value in spec["args"]]
        parts += [f"{name}={_argument(value)}" for name, value in spec["kwargs"].items()]
    except (BadPayload, KeyError, TypeError, AttributeError):
        return cut(head, ARGUMENTS_MAX)
    return cut(", ".join(parts), ARGUMENTS_MAX)


def _argument(value: Any) -> str:
    return cut(msgspec.json.encode(value).decode(), ARGUMENT_MAX)


def count(number: int, *, whole: bool) -> str:
    """A number, followed by "+" if counting stopped there."""
    return f"{number:,}" if whole else f"{number:,}+"


def titled(head: str, below: str) -> SafeString | str:
    """A cell of two lines, the second in small print."""
    if not below:
        return head
    return format_html('{}<span class="byrote-small">{}</span>', head, below)
