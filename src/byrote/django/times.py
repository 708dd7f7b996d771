# SPDX-License-Identifier: MIT
"""Moments by their age, durations and states by their words.

Every project that renders a template imports this, also one without the admin: it imports little.
"""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import localize
from django.utils.html import format_html
from django.utils.safestring import SafeString

from byrote.core.duration import spoken

SECOND = timedelta(seconds=1)


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
