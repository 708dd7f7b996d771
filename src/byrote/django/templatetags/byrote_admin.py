# SPDX-License-Identifier: MIT
"""Filters of the admin's templates."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import template
from django.utils.html import format_html

from byrote.django import times

if TYPE_CHECKING:
    from byrote.core.progress import Progress

register = template.Library()
register.filter("badge", times.badge)
register.filter("moment", times.moment)
register.filter("wait", times.wait)


@register.filter
def exact(value: datetime) -> Any:
    """A moment to the second, with its age."""
    return format_html(
        '<time datetime="{}">{}</time> <span class="byrote-small">{}</span>',
        value.isoformat(),
        times.local(value),
        times.age(value),
    )


@register.filter
def length_of(value: timedelta) -> str:
    """A duration, such as "1h30m"."""
    return times.rough(value)


@register.filter
def bar(value: "Progress") -> Any:
    """A run's progress as a bar and in words."""
    from byrote.core.progress import spoken  # noqa: PLC0415 -- Django imports filters for all.

    words = spoken(value)
    # Formatted here: the browser does not accept a localised number.
    return format_html(
        '<progress max="100" value="{}" aria-label="Progress">{}</progress> {}',
        f"{value.percent:.1f}",
        words,
        words,
    )
