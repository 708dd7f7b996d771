# SPDX-License-Identifier: MIT
"""Cron expressions: which local minutes match, and when those minutes are due in a time zone.

The five fields are those of Debian's cron, plus `L`, `LW`, `5L` and `MON#1`. Two rules
decide what happens when clocks change, and the hour field alone decides which one applies:

- The hour field leaves an hour of the day out (`30 2 * * *`, `0 */2 * * *`): the expression means
  local times, and each is due once. A local time that is skipped is due at the first moment after
  the gap; one that comes twice is due at its first occurrence. Local times that fall on the same
  moment make one tick.
- The hour field matches all 24 hours (`*/10 * * * *`, `0 0-23 * * *`): the expression is due at
  every moment at which the zone's clock shows a matching minute. So nothing is due for a skipped
  hour, and an hour that comes twice has its ticks twice.

The time zone is the authority on offsets, queried for one moment at a time. The search assumes
that no zone changes its clocks twice within three days; a test checks that of every zone.
"""

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import product
from typing import Final

import msgspec

from byrote.core.errors import BadOption

EXPRESSION_MAX: Final = 1000
"""Characters of an expression; the longest one without repetitions has about 500."""
YEAR_MAX: Final = 9998
"""The last year that is searched: in 9999, a moment may be beyond the calendar in some zone."""

MINUTE: Final = timedelta(minutes=1)
DAY: Final = timedelta(days=1)
MONTH_NAMES: Final = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    *("JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
DAY_NAMES: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

LENGTHS: Final = {2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}
"""How many days a month has; the others have 31. Each begins on every weekday in some year."""


class Field(msgspec.Struct, frozen=True):
    """One of the five fields: its name, its bounds, and names that stand for numbers."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def numbers(self, term: str) -> set[int]:
        """The numbers of `*`, `5`, `MON`, `1-5`, `*/2`, `5/2` or `1-5/2`."""
        base, slash, step = term.partition("/")
        first, dash, last = base.partition("-")
        if base == "*":
            low, high = self.low, self.high
        else:
            low = self._number(first, term)
            high = self._number(last, term) if dash else self.high if slash else low
        every = self._digits(step, term) if slash else 1
        if low > high or every == 0:
            raise self.refusal(term)
        return set(range(low, high + 1, every))

    def _number(self, text: str, term: str) -> int:
        named = text in self.names
        number = self.low + self.names.index(text) if named else self._digits(text, term)
        if not self.low <= number <= self.high:
            raise self.refusal(term)
        return number

    def _digits(self, text: str, term: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 4):
            raise self.refusal(term)
        return int(text)

    def refusal(self, term: str) -> BadOption:
        """Returns the error for a term of this field."""
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return BadOption(f"bad {self.name} {term!r}, it takes {self.low}-{self.high}{names}")


MINUTES: Final = Field("minute", 0, 59)
HOURS: Final = Field("hour", 0, 23)
DAYS: Final = Field("day of month", 1, 31)
MONTHS: Final = Field("month", 1, 12, MONTH_NAMES)
WEEKDAYS: Final = Field("day of week", 0, 7, DAY_NAMES)


class MonthDays(msgspec.Struct, frozen=True):
    """The day-of-month field: numbers, `L` for the last day, `LW` for the last Monday-Friday."""

    numbers: frozenset[int]
    last: bool = False
    last_weekday: bool = False

    @classmethod
    def parse(cls, text: str) -> "MonthDays":
        """Parse the field. Raises BadOption."""
        terms = text.split(",")
        plain = [term for term in terms if term not in ("L", "LW")]
        return cls(_numbers(DAYS, plain), "L" in terms, "LW" in terms)

    def match(self, first_weekday: int, length: int) -> set[int]:
        """Its days in a month of that length, whose first day is that weekday (Sunday is 0)."""
        found = {day for day in self.numbers if day <= length}
        if self.last:
            found.add(length)
        if self.last_weekday:
            weekday = (first_weekday + length - 1) % 7
            found.add(length - {6: 1, 0: 2}.get(weekday, 0))
        return found


class Weekdays(msgspec.Struct, frozen=True):
    """The day-of-week field: weekdays, `MON#2` for the second Monday, `5L` for the last Friday."""

    numbers: frozenset[int]
    nth: frozenset[tuple[int, int]]
    last: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "Weekdays":
        """Parse the field. Raises BadOption."""
        plain, nth, last = [], set(), set()
        for term in text.split(","):
            weekday, sharp, which = term.partition("#")
            if sharp:
                if which not in ("1", "2", "3", "4", "5"):
                    raise WEEKDAYS.refusal(term)
                nth.add((_weekday(weekday, term), int(which)))
            elif term.endswith("L"):
                last.add(_weekday(term[:-1], term))
            else:
                plain.append(term)
        numbers = frozenset(number % 7 for number in _numbers(WEEKDAYS, plain))
        return cls(numbers, frozenset(nth), frozenset(last))

    def match(self, first_weekday: int, length: int) -> set[int]:
        """Its days in a month of that length, whose first day is that weekday (Sunday is 0)."""

        def matches(day: int) -> bool:
            weekday = (first_weekday + day - 1) % 7
            return (
                weekday in self.numbers
                or (weekday, (day + 6) // 7) in self.nth
                or (weekday in self.last and day + 7 > length)
            )

        return {day for day in range(1, length + 1) if matches(day)}


class Cron(msgspec.Struct, frozen=True):
    """A parsed expression."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: tuple[int, ...]
    days: dict[tuple[int, int], tuple[int, ...]]
    """The days of a month, by the weekday of its first day (Sunday is 0) and its length."""

    @property
    def by_moment(self) -> bool:
        """Whether it is due whenever the clock shows a match, rather than once per local time."""
        return len(self.hours) == 24

    def ticks(self, after: datetime, zone: tzinfo) -> Iterator[datetime]:
        """The moments after a moment at which it is due, in UTC."""
        found = self._shown(after, zone) if self.by_moment else self._local(after, zone)
        return (moment for moment in found if moment > after)

    def _local(self, after: datetime, zone: tzinfo) -> Iterator[datetime]:
        """Each local time once. Equal moments come from the same gap."""
        previous = None
        wall = self.next_local(_wall(after, zone))
        while wall is not None:
            moment = _first_moment(wall, zone)
            if moment != previous:
                yield moment
            previous = moment
            wall = self.next_local(wall + MINUTE)

    def _shown(self, after: datetime, zone: tzinfo) -> Iterator[datetime]:
        """Each moment at which the zone's clock shows a match."""
        moment = after
        wall = self.next_local(_wall(after, zone))
        while wall is not None:
            distance = wall - _wall(moment, zone)
            if distance > 3 * DAY:
                # No clock is changed by more than a day, so nothing that matches is passed over.
                moment = _utc(wall - 2 * DAY, zone)
                continue
            expected = moment + distance
            if _wall(expected, zone) == wall:
                yield expected
                moment = expected
                wall = self.next_local(wall + MINUTE)
            else:
                moment = _change_between(moment, expected, zone)
                wall = self.next_local(_wall(moment, zone))

    def next_local(self, wall: datetime) -> datetime | None:
        """The first local minute that matches, at or after a local time; None if there is none.

        A match is at most 40 years away (29 February on a given weekday around 2100), and a year
        takes at most twelve look-ups.
        """
        if wall.second or wall.microsecond:
            wall = wall.replace(second=0, microsecond=0) + MINUTE
        today = wall.date()
        for day in self._dates(today):
            time = self._time(wall.hour, wall.minute) if day == today else self._time(0, 0)
            if time is not None:
                return datetime(day.year, day.month, day.day, *time)  # noqa: DTZ001 -- local.
        return None

    def _time(self, hour: int, minute: int) -> tuple[int, int] | None:
        """The first hour and minute of a day that match, at or after the given ones."""
        for found in self.hours:
            if found == hour:
                later = next((number for number in self.minutes if number >= minute), None)
                if later is not None:
                    return found, later
            elif found > hour:
                return found, self.minutes[0]
        return None

    def _dates(self, start: date) -> Iterator[date]:
        for year in range(start.year, YEAR_MAX + 1):
            for month in self.months:
                if year == start.year and month < start.month:
                    continue
                for day in self.days[_shape(year, month)]:
                    if (year, month, day) >= (start.year, start.month, start.day):
                        yield date(year, month, day)


@lru_cache(maxsize=1024)
def parse_cron(text: str) -> Cron:
    """Parse five fields. Raises BadOption for what cannot be read or never matches."""
    try:
        parsed = _parsed(text)
    except BadOption as error:
        raise BadOption(
            f"{text[:EXPRESSION_MAX]!r} is not a cron expression: {error}. Its five fields are "
            "minute, hour, day of month, month and day of week."
        ) from None
    lengths = {length for month in parsed.months for length in LENGTHS.get(month, (31,))}
    if not any(parsed.days[shape] for shape in product(range(7), lengths)):
        raise BadOption(
            f"{text!r} never comes: none of its months has such a day. Its five fields are "
            "minute, hour, day of month, month and day of week."
        )
    return parsed


def _parsed(text: str) -> Cron:
    fields = text.upper().split()
    if len(fields) != 5 or len(text) > EXPRESSION_MAX:
        raise BadOption(f"it has {len(fields)} fields and {len(text)} characters, up to 5 and 1000")
    minute, hour, day, month, weekday = fields
    return Cron(
        minutes=tuple(sorted(_numbers(MINUTES, minute.split(",")))),
        hours=tuple(sorted(_numbers(HOURS, hour.split(",")))),
        months=tuple(sorted(_numbers(MONTHS, month.split(",")))),
        days=_days(day, weekday),
    )


@lru_cache(maxsize=1024)
def _days(day: str, weekday: str) -> dict[tuple[int, int], tuple[int, ...]]:
    """The days that two fields mean, for each of the 28 shapes a month can have."""
    month_days, weekdays = MonthDays.parse(day), Weekdays.parse(weekday)
    # Debian's cron: both fields must match if one of them begins with a star, else either.
    both = day.startswith("*") or weekday.startswith("*")
    days = {}
    for shape in product(range(7), (28, 29, 30, 31)):
        of_month, of_week = month_days.match(*shape), weekdays.match(*shape)
        days[shape] = tuple(sorted(of_month & of_week if both else of_month | of_week))
    return days


def _numbers(field: Field, terms: list[str]) -> frozenset[int]:
    return frozenset(number for term in terms for number in field.numbers(term))


def _weekday(text: str, term: str) -> int:
    found = set() if text in ("", "*") else WEEKDAYS.numbers(text)
    if len(found) != 1:
        raise WEEKDAYS.refusal(term)
    return found.pop() % 7


def _shape(year: int, month: int) -> tuple[int, int]:
    """The weekday of a month's first day (Sunday is 0), and the month's length."""
    first, length = calendar.monthrange(year, month)
    return (first + 1) % 7, length


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    """Return the local time of the zone at a moment."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _utc(wall: datetime, zone: tzinfo, fold: int = 0) -> datetime:
    """The moment of a local time; of one in a gap, as if the clock had not (1: had) changed yet."""
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _first_moment(wall: datetime, zone: tzinfo) -> datetime:
    """The first moment of a local time; the first one after the gap if it is skipped."""
    moment = _utc(wall, zone)
    if _wall(moment, zone) == wall:
        return moment
    return _change_between(_utc(wall, zone, fold=1), moment, zone)


def _change_between(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first second of the new offset, between two moments that have different offsets."""
    offset = before.astimezone(zone).utcoffset()
    passed, distance = before.replace(microsecond=0), (after - before) // timedelta(seconds=1) + 1
    while distance > 1:
        half = distance // 2
        middle = passed + timedelta(seconds=half)
        if middle.astimezone(zone).utcoffset() == offset:
            passed, distance = middle, distance - half
        else:
            distance = half
    return passed + timedelta(seconds=1)
