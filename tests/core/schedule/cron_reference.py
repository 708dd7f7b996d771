# SPDX-License-Identifier: MIT
"""Cron, slowly: the clock of a zone is read minute by minute, and each minute is matched by itself.

It shares nothing with `core/schedule/cron.py` and looks nothing up ahead, so it is easy to believe.
"""

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache

MINUTE = timedelta(minutes=1)
DAY_NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
MONTH_NAMES = [name.upper() for name in calendar.month_abbr][1:]


def due(expression: str, shown: list[tuple[datetime, datetime]]) -> list[datetime]:
    """The moments at which an expression is due, of (moment, what the clock shows), by minutes."""
    minute, hour, day, month, weekday = expression.upper().split()
    minutes, hours = numbers(minute, 0, 59), numbers(hour, 0, 23)

    def matches(wall: datetime) -> bool:
        return (
            wall.minute in minutes
            and wall.hour in hours
            and date_matches(wall.date(), day, month, weekday)
        )

    if hours == set(range(24)):
        return [moment for moment, wall in shown if matches(wall)]
    found = []
    latest = shown[0][1] - MINUTE
    for moment, wall in shown:
        # Local times that the clock has passed for the first time: one, or all those in a gap.
        passed = []
        while latest < wall:
            latest += MINUTE
            passed.append(latest)
        if any(map(matches, passed)):
            found.append(moment)
    return found


def clock_of(zone: tzinfo, start: datetime, length: timedelta) -> list[tuple[datetime, datetime]]:
    """Every minute from a moment on, in UTC, and what the zone's clock shows then."""
    every = (start + n * MINUTE for n in range(length // MINUTE))
    return [(moment, moment.astimezone(zone).replace(tzinfo=None, fold=0)) for moment in every]


def changes(zone: tzinfo, first: int, last: int) -> Iterator[datetime]:
    """The minute in which each change of clocks happens, from one year to another."""
    moment, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last + 1, 1, 1, tzinfo=UTC)
    step = timedelta(hours=12)
    while moment < end:
        if moment.astimezone(zone).utcoffset() != (moment + step).astimezone(zone).utcoffset():
            minute = moment
            while minute.astimezone(zone).utcoffset() == moment.astimezone(zone).utcoffset():
                minute += MINUTE
            yield minute
        moment += step


@cache
def numbers(field: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    found: set[int] = set()
    for term in field.split(","):
        base, _, step = term.partition("/")
        first, _, last = base.replace("*", f"{low}-{high}").partition("-")
        start = names.index(first) + low if first in names else int(first)
        end = names.index(last) + low if last in names else int(last or (high if step else start))
        found |= {n for n in range(start, end + 1) if (n - start) % int(step or 1) == 0}
    return found


@cache
def date_matches(today: date, day: str, month: str, weekday: str) -> bool:
    if today.month not in numbers(month, 1, 12, tuple(MONTH_NAMES)):
        return False
    of_month = any(month_day_matches(today, term) for term in day.split(","))
    of_week = any(weekday_matches(today, term) for term in weekday.split(","))
    if day.startswith("*") or weekday.startswith("*"):
        return of_month and of_week
    return of_month or of_week


def month_day_matches(today: date, term: str) -> bool:
    end = calendar.monthrange(today.year, today.month)[1]
    if term == "L":
        return today.day == end
    if term == "LW":
        weekdays = [d for d in range(1, end + 1) if today.replace(day=d).weekday() < 5]
        return today.day == weekdays[-1]
    return today.day in numbers(term, 1, 31)


def weekday_matches(today: date, term: str) -> bool:
    def is_weekday(text: str) -> bool:
        found = numbers(text, 0, 7, tuple(DAY_NAMES))
        return today.isoweekday() % 7 in {number % 7 for number in found}

    if "#" in term:
        text, which = term.split("#")
        return is_weekday(text) and (today.day - 1) // 7 + 1 == int(which)
    if term.endswith("L"):
        return is_weekday(term[:-1]) and (today + timedelta(days=7)).month != today.month
    return is_weekday(term)
