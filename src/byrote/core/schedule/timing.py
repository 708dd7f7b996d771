# SPDX-License-Identifier: MIT
"""Timings of periodic tasks: texts that stand for a series of moments.

Five fields of cron, read in a time zone; `every 10m`, counted from 1970 so that every beat agrees;
`at 2026-12-24T18:00:00+00:00`, once. See `core/schedule/cron.py` for changes of clocks.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import takewhile
from typing import Final

from byrote.core.duration import duration, spoken
from byrote.core.errors import BadOption
from byrote.core.schedule.cron import parse_cron

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EVERY_MIN: Final = timedelta(seconds=1)
EVERY_MAX: Final = timedelta(days=366)
NICKNAMES: Final[Mapping[str, str]] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
OF_THE_MACHINE: Final = frozenset({"localtime", "posixrules", "Factory"})
"""Names whose meaning differs between machines, or that have none."""

_SPACES = re.compile(r"\s+")


def timing_of(
    *, cron: str | None, every: timedelta | str | float | None, at: datetime | None
) -> str:
    """Returns the text of a timing. Raises BadOption unless exactly one argument is present."""
    if [cron, every, at].count(None) != 2:
        raise BadOption("Use exactly one of cron, every and at.")
    if cron is not None:
        return read_timing(cron)
    if every is not None:
        return f"every {spoken(_every(every))}"
    if not isinstance(at, datetime):
        raise BadOption(f"`at` is an aware datetime, not {at!r}.")
    return f"at {_in_utc(at).isoformat()}"


def read_timing(text: str) -> str:
    """Returns the stored form of a timing that a person wrote. Raises BadOption with examples."""
    if not isinstance(text, str):
        raise BadOption(_advice(text))
    text = _SPACES.sub(" ", text).strip()
    text = NICKNAMES.get(text.lower(), text)
    if text.lower().startswith("every "):
        return f"every {spoken(_every(text[6:]))}"
    if text.lower().startswith("at "):
        return f"at {_moment(text).isoformat()}"
    if len(text.split()) != 5:
        raise BadOption(_advice(text))
    parse_cron(text)
    return text


def latest_tick(timing: str, zone: str, *, first: datetime, now: datetime) -> datetime:
    """The last of the moments from a first one until now."""
    if timing.startswith("every "):
        length = _every(timing[6:])
        return max(first, EPOCH + (now - EPOCH) // length * length)
    # Most schedules tick daily: try the last day before counting through a long absence.
    for start in (max(first, now - timedelta(days=1)), first):
        passed = takewhile(lambda moment: moment <= now, ticks_after(timing, zone, start))
        latest = max(passed, default=None)
        if latest is not None:
            return latest
    return first


def ticks_after(timing: str, zone: str, after: datetime) -> Iterator[datetime]:
    """Returns the moments of a timing after a moment, in UTC."""
    where = zone_of(zone)
    if timing.startswith("every "):
        return _multiples(_every(timing[6:]), after)
    if timing.startswith("at "):
        moment = _moment(timing)
        return iter([moment] if moment > after else [])
    return parse_cron(timing).ticks(after, where)


def zone_of(name: str) -> tzinfo:
    """The time zone by this name, such as `Europe/Berlin`."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 -- an import that most commands do not need.

    with contextlib.suppress(LookupError, ValueError, OSError, TypeError):
        if name not in OF_THE_MACHINE:
            return ZoneInfo(name)
    raise BadOption(
        f"Unknown time zone {name!r}; write one like 'Europe/Berlin' or 'UTC'. "
        "(On a system without time zones, install the package tzdata.)"
    )


def _multiples(length: timedelta, after: datetime) -> Iterator[datetime]:
    count = (after - EPOCH) // length
    while True:
        count += 1
        yield EPOCH + count * length


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text[3:].strip())
    except ValueError:
        raise BadOption(_advice(text)) from None
    return _in_utc(moment)


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise BadOption(
            f"{moment.isoformat()} has no time zone; pass an aware datetime, or end it with Z."
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadOption(f"{moment.isoformat()} is beyond the calendar.") from None


def _every(value: timedelta | str | float) -> timedelta:
    try:
        length = duration(value)
    except ValueError as error:
        raise BadOption(str(error)) from None
    if not EVERY_MIN <= length <= EVERY_MAX:
        raise BadOption(f"`every` is between 1 s and 366 days, not {value!r}.")
    return length


def _advice(text: object) -> str:
    return (
        "Write five fields of cron like '0 3 * * *', @hourly, @daily, @weekly, @monthly, @yearly, "
        f"'every 10m', or 'at 2026-12-24T18:00Z', not {text!r}."
    )
