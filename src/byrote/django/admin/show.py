# SPDX-License-Identifier: MIT
"""How the admin shows values: JSON as it was stored, moments by their age, states by their word."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.utils import timezone
from django.utils.formats import localize
from django.utils.html import format_html
from django.utils.safestring import SafeString

from byrote.core.codec import unpack
from byrote.core.duration import spoken
from byrote.core.errors import BadPayload

TEXT_MAX = 20_000
"""Characters of one document that a page shows; the rest is a link away."""
SECOND = timedelta(seconds=1)
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
        return stored  # Somebody altered the row; people should see what is there.


def cut(text: str, limit: int) -> str:
    """The beginning of a text."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def call(head: str, size: int) -> str:
    """The arguments of a spec in one line; of one too large for that, only its size."""
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


def age(moment: datetime | None) -> str:
    """How long ago a moment was, or how far away it is, in a few characters."""
    if moment is None:
        return ""
    passed = (timezone.now() - moment) // SECOND * SECOND
    if passed == timedelta():
        return "now"
    return f"{rough(passed)} ago" if passed > timedelta() else f"in {rough(-passed)}"


def rough(length: timedelta) -> str:
    """A duration to two units, or to the millisecond where it is short."""
    if length < timedelta(seconds=10):
        return spoken(timedelta(milliseconds=length // timedelta(milliseconds=1)))
    whole = timedelta(seconds=length // timedelta(seconds=1))
    for over, grain in ((86_400, 3_600), (3_600, 60)):
        if whole >= timedelta(seconds=over):
            return spoken(whole - whole % timedelta(seconds=grain))
    return spoken(whole)


def moment(value: datetime | None) -> SafeString | str:
    """A moment by its age; the exact time when one points at it."""
    if value is None:
        return ""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', value.isoformat(), local(value), age(value)
    )


def local(value: datetime) -> str:
    """A moment in the reader's time zone, to the second."""
    here = timezone.localtime(value) if timezone.is_aware(value) else value
    return f"{localize(here.date())} {here:%H:%M:%S}"


def badge(word: str) -> SafeString:
    """A state by its word; the colour only underlines it."""
    return format_html('<span class="byrote-state byrote-{}">{}</span>', word.lower(), word.lower())


def count(number: int, *, whole: bool) -> str:
    """A number, and whether there may be more that were not counted."""
    return f"{number:,}" if whole else f"{number:,}+"


def titled(head: str, below: str) -> SafeString | str:
    """Two lines of a cell: what matters, and in small print what it is about."""
    if not below:
        return head
    return format_html('{}<span class="byrote-small">{}</span>', head, below)
