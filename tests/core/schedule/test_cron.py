# SPDX-License-Identifier: MIT
"""Cron expressions against a slow reference, in every zone, on the days when clocks change."""

import random
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones

import pytest

from byrote.core.errors import BadOption
from byrote.core.schedule.cron import EXPRESSION_MAX, parse_cron
from byrote.core.schedule.timing import OF_THE_MACHINE, read_timing
from tests.core.schedule.cron_reference import changes, clock_of, date_matches, due

pytestmark = pytest.mark.pure

EXPRESSIONS = [
    "* * * * *", "*/10 * * * *", "0 * * * *", "45 * * * *", "7-59/13 */1 * * *", "*/20 0-23 * * *",
    "0,30 0/1 * * *", "0 */2 * * *", "*/30 2 * * *", "*/15 1-3 * * *", "5 */3 * * *", "0 2-4 * * *",
    "15,45 2 * * *", "30 2 * * *", "0 0 * * *", "59 23 * * *", "* 2 * * *", "* 0-22 * * *",
    "1/7 1/2 * * *", "30 1,2,3 * * SUN", "0 3 * * MON-FRI", "*/5 */5 * * 0", "0 2 L * *",
    "0 2 LW * *", "30 2 * * 7L", "30 2 * * SUN#1,SUN#2", "0 2 1,15 * MON", "0 2 */2 * MON",
    "0 2 1-7 * */7", "*/40 0,1,2,3,23 * MAR,APR,SEP-NOV *", "0 * 1-7 * 0",
]  # fmt: skip
ZONES = {
    "Europe/Berlin": 2027, "America/New_York": 2027, "America/St_Johns": 2005, "Asia/Gaza": 2040,
    "Australia/Lord_Howe": 2027, "Antarctica/Troll": 2027, "Pacific/Apia": 2011,
    "Pacific/Kwajalein": 1993, "Africa/Casablanca": 2027, "Asia/Kathmandu": 1985,
    "America/Caracas": 2016, "Asia/Pyongyang": 2015, "Africa/Cairo": 2027,
    "America/Havana": 2027, "Atlantic/Azores": 2027, "Europe/London": 1971,
}  # fmt: skip
"""Zones and a year in which their clocks change: by an hour, two, half of one, or a day."""


def computed(expression: str, zone: tzinfo, start: datetime, end: datetime) -> list[datetime]:
    ticks = parse_cron(expression).ticks(start - timedelta(microseconds=1), zone)
    return list(takewhile(lambda moment: moment < end, ticks))


@pytest.mark.parametrize("name", ZONES)
def test_every_expression_is_due_as_in_the_reference(name: str) -> None:
    zone, year = ZoneInfo(name), ZONES[name]
    found = list(changes(zone, year, year))
    assert found
    for change in found:
        start = change - timedelta(hours=30)
        shown = clock_of(zone, start, timedelta(hours=56))
        for expression in EXPRESSIONS:
            expected = due(expression, shown)
            ticks = computed(expression, zone, start, shown[-1][0] + timedelta(minutes=1))
            assert ticks == expected, (expression, change)


def test_a_gap_may_end_in_the_middle_of_a_minute() -> None:
    """Monrovia's clocks went from 00:00:00 to 00:44:30 on 7 January 1972."""
    zone, start = ZoneInfo("Africa/Monrovia"), datetime(1972, 1, 7, tzinfo=UTC)

    def first(expression: str) -> str:
        return f"{next(parse_cron(expression).ticks(start, zone)):%dT%H:%M:%S}"

    assert first("*/30 0-5 7 * *") == "07T00:44:30"
    assert first("*/30 * 7 * *") == "07T01:00:00"
    assert first("45 0 * * *") == "07T00:45:00"


def test_every_zone_agrees_with_the_reference_when_its_clocks_change() -> None:
    jitter = random.Random(7)
    seen = set()
    for name in sorted(available_timezones() - OF_THE_MACHINE):
        zone = ZoneInfo(name)
        for change in changes(zone, 2027, 2027):
            start = change - timedelta(hours=4)
            shown = clock_of(zone, start, timedelta(hours=8))
            if (walls := tuple(wall for _, wall in shown)) in seen:
                continue
            seen.add(walls)
            for expression in jitter.sample(EXPRESSIONS, 8):
                end = shown[-1][0] + timedelta(minutes=1)
                assert computed(expression, zone, start, end) == due(expression, shown), (
                    expression,
                    name,
                    change,
                )
    assert len(seen) > 20


def test_the_next_tick_is_the_same_from_every_moment() -> None:
    """Also from a moment inside the hour that comes twice."""
    for name in ("Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll"):
        zone = ZoneInfo(name)
        for change in changes(zone, 2027, 2027):
            start = change - timedelta(hours=5)
            shown = clock_of(zone, start, timedelta(hours=30))
            for expression in ("*/15 1-3 * * *", "5 */3 * * *", "*/25 * * * *", "30 2 * * *"):
                expected = due(expression, shown)
                for moment, _ in shown[: 9 * 60]:
                    after = moment + timedelta(seconds=moment.minute)
                    following = [tick for tick in expected if tick > after]
                    found = next(parse_cron(expression).ticks(after, zone))
                    assert following[:1] in ([found], []), (name, expression, after)


def test_random_expressions_agree_with_the_reference() -> None:
    jitter = random.Random(11)

    def field(low: int, high: int) -> str:
        one, other = sorted(jitter.choices(range(low, high + 1), k=2))
        step = jitter.randint(1, 9)
        forms = ["*", f"*/{step}", f"{one}", f"{one}-{other}", f"{one}-{other}/{step}",
                 f"{one},{other}", f"{one}/{step}", f"{one},{other}-{high}"]  # fmt: skip
        return jitter.choice(forms)

    for name in ("Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "America/St_Johns"):
        zone = ZoneInfo(name)
        for change in changes(zone, 2027, 2027):
            start = change - timedelta(hours=4)
            shown = clock_of(zone, start, timedelta(hours=10))
            for _ in range(60):
                expression = f"{field(0, 59)} {field(0, 23)} * * {field(0, 7)}"
                end = shown[-1][0] + timedelta(minutes=1)
                assert computed(expression, zone, start, end) == due(expression, shown), expression


@pytest.mark.parametrize(
    "days",
    ["29 2 *", "*/28 2 MON", "29 2 */6", "L 2 *", "LW * *", "* * 5L", "* 2 MON#5", "*/31 * FRI",
     "13 * FRI", "*/13 * FRI", "31 * *", "30,31 2,4 *", "1-7 9 MON", "* JAN,JUL SAT-7"],
)  # fmt: skip
def test_days_are_those_of_the_calendar_for_a_century(days: str) -> None:
    day, month, weekday = days.upper().split()
    first = date(2020, 1, 1)
    every = (first + timedelta(days=n) for n in range(36_525 * 2))
    expected = [today for today in every if date_matches(today, day, month, weekday)]
    ticks = parse_cron(f"0 0 {days}").ticks(datetime(2019, 12, 31, 23, 59, tzinfo=UTC), UTC)

    assert [tick.date() for tick in islice(ticks, min(len(expected), 500))] == expected[:500]


class Counting(tzinfo):
    """A zone that counts how often it is asked."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone, self.asked = zone, 0

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        self.asked += 1
        return self.zone.utcoffset(moment)

    def dst(self, moment: datetime | None) -> timedelta | None:
        return self.zone.dst(moment)

    def fromutc(self, moment: datetime) -> datetime:
        self.asked += 1
        return self.zone.fromutc(moment.replace(tzinfo=self.zone)).replace(tzinfo=self)


def test_a_tick_costs_few_questions_however_far_away_it_is() -> None:
    """A ceiling for the work: 30, and two for each minute that comes twice and is passed over."""
    berlin = ZoneInfo("Europe/Berlin")
    zone = Counting(berlin)
    for change in changes(berlin, 2027, 2027):
        for expression in (*EXPRESSIONS, "0 0 29 2 *", "0 * 29 2 *", "0 0 29 2 */6"):
            for hours in range(-4, 1):
                zone.asked = 0
                tick = next(parse_cron(expression).ticks(change + timedelta(hours=hours), zone))
                assert zone.asked <= 30 + 60 * 2, (expression, tick)


def test_every_zone_leaves_a_week_between_changes() -> None:
    """What the search relies on: two changes are never within three days."""
    for name in sorted(available_timezones() - OF_THE_MACHINE):
        found = list(changes(ZoneInfo(name), 2026, 2028))
        gaps = [later - earlier for earlier, later in pairwise(found)]
        assert min(gaps, default=timedelta(days=9)) > timedelta(days=6), name


def test_there_is_nothing_after_the_calendar() -> None:
    last = datetime(9998, 12, 31, 23, 58, tzinfo=UTC)

    assert [tick.minute for tick in parse_cron("* * * * *").ticks(last, UTC)] == [59]
    assert list(parse_cron("0 0 1 1 *").ticks(last, ZoneInfo("Pacific/Kiritimati"))) == []


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("60 * * * *", "minute '60'"), ("* 24 * * *", "hour '24'"), ("* * 0 * *", "month '0'"),
        ("* * * 13 *", "month '13'"), ("* * * * 8", "week '8'"), ("* * * foo *", "month 'FOO'"),
        ("5-1 * * * *", "minute '5-1'"), ("*/0 * * * *", "minute '*/0'"), ("1,, * * * *", "''"),
        ("* * * * MON#6", "week 'MON#6'"), ("* * * * L", "week 'L'"), ("* * 15W * *", "'15W'"),
        ("*/ * * * *", "minute '*/'"), ("-1 * * * *", "minute '-1'"), ("* * * * *-5", "'*-5'"),
        ("٣ * * * *", "minute '٣'"), ("9" * 5000 + " * * * *", "characters"),
        ("0 0 31 2 *", "never comes"), ("0 0 30,31 2 *", "never comes"),
        ("0 0 31 4,6,9,11 *", "never comes"), ("0 0 */31 2 FRI#5", "never comes"),
        ("0 0 31 FEB */2", "never comes"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_field_and_its_text(written: str, named: str) -> None:
    with pytest.raises(BadOption, match="five fields") as refused:
        read_timing(written)

    assert named in str(refused.value)
    assert len(str(refused.value)) < EXPRESSION_MAX + 300


def test_either_day_field_is_enough_unless_one_begins_with_a_star() -> None:
    start = datetime(2027, 2, 1, tzinfo=UTC)

    def days(expression: str) -> list[int]:
        return [tick.day for tick in islice(parse_cron(expression).ticks(start, UTC), 3)]

    assert days("0 12 31 2 MON") == [1, 8, 15]
    assert days("0 12 2 * WED") == [2, 3, 10]
    assert days("0 12 */10 * MON") == [1, 1, 31]
