# SPDX-License-Identifier: MIT
"""How moments, durations and states are shown.

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
    """How long ago a moment was, or how far in the future it is, such as "5m ago"."""
    if moment is None:
        return ""
    passed = (timezone.now() - moment) // SECOND * SECOND
    if passed == timedelta():
        return "now"
    return f"{rough(passed)} ago" if passed > timedelta() else f"in {rough(-passed)}"


def rough(length: timedelta) -> str:
    """A duration to two units; with milliseconds under a second, with tenths under ten seconds."""
    if length < SECOND:
        return spoken(timedelta(milliseconds=length // timedelta(milliseconds=1)))
    if length < 10 * SECOND:
        return f"{length // timedelta(milliseconds=100) / 10:g}s"
    whole = timedelta(seconds=length // timedelta(seconds=1))
    for over, grain in ((86_400, 3_600), (3_600, 60)):
        if whole >= timedelta(seconds=over):
            return spoken(whole - whole % timedelta(seconds=grain))
    return spoken(whole)


def moment(value: datetime | None) -> SafeString | str:
    """A moment by its age; the exact time is in the tooltip."""
    if value is None:
        return ""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', value.isoformat(), local(value), age(value)
    )


def local(value: datetime) -> str:
    """A moment in the current time zone, to the second."""
    here = timezone.localtime(value) if timezone.is_aware(value) else value
    return f"{localize(here.date())} {here:%H:%M:%S}"


def badge(word: str) -> SafeString:
    """A state as a coloured word."""
    return format_html('<span class="byrote-state byrote-{}">{}</span>', word.lower(), word.lower())


WAITS = {
    "due": "starts",
    "retry": "retries",
    "snooze": "continues",
    "sleep": "wakes up",
}


def wait(reason: str | None, until: datetime | None) -> str:
    """Why a run waits, and when it continues, such as "retries in 5m"."""
    if reason in WAITS:
        return f"{WAITS[reason]} {age(until)}"
    if reason == "event":
        # Without a timeout the moment is a hundred years away.
        endless = until is None or until - timezone.now() > timedelta(days=10_000)
        return "waits for a signal" + ("" if endless else f"; times out {age(until)}")
    return f"{reason or ''}, {age(until)}"
