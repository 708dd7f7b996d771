# SPDX-License-Identifier: MIT
"""Which moments a timing means, and what is done about those that are due."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.core.errors import BadOption
from byrote.core.policy import Retry
from byrote.core.schedule.schedule import (
    TICKS_MAX,
    Schedule,
    StoredSchedule,
    make_schedule,
    next_tick,
    tick_of,
    turn_of,
)
from byrote.core.schedule.timing import latest_tick, read_timing, ticks_after
from byrote.core.spec import Delivery, describe

pytestmark = pytest.mark.pure

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def schedule(name: str = "s", how: Delivery | None = None, **timing: Any) -> Schedule:
    spec = describe("t", 1, [1.0], {"b": 1, "a": 2}, delivery=how or Delivery())
    return make_schedule(name, spec, **timing or {"every": "1m"})


def planned(said: Schedule, *, next_at: datetime | None, now: datetime) -> StoredSchedule:
    return StoredSchedule(
        schedule=said, origin="hand", next_at=next_at, last_at=None, last_run=None, runs=0,
        skipped=0, paused_at=None, fault=None, changed_at=now, now=now,
    )  # fmt: skip


def moments(timing: str, zone: str, after: str, count: int) -> list[str]:
    found = islice(ticks_after(timing, zone, at(after)), count)
    return [f"{moment:%Y-%m-%dT%H:%M}" for moment in found]


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("0 3 * * *", "0 3 * * *"),
        ("  */5  * * *   mon-fri ", "*/5 * * * mon-fri"),
        ("@daily", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("every 90s", "every 1m30s"),
        ("every 24h", "every 1d"),
        ("at 2026-12-24T18:00+01:00", "at 2026-12-24T17:00:00+00:00"),
        ("at 2026-12-24T18:00Z", "at 2026-12-24T18:00:00+00:00"),
    ],
)
def test_timings_are_kept_in_one_form(written: str, stored: str) -> None:
    assert read_timing(written) == stored
    assert read_timing(stored) == stored


@pytest.mark.parametrize(
    "written",
    [
        "", "soon", "0 3 * *", "0 0 3 * * *", "60 * * * *", "0 0 30 2 *", "@reboot", "every",
        "every x", "every 0s", "every 500ms", "every 400d", "at noon", "at 2026-12-24T18:00",
        "* * * * 8",
    ],
)  # fmt: skip
def test_a_malformed_timing_is_refused_with_advice(written: str) -> None:
    with pytest.raises(BadOption) as refused:
        read_timing(written)

    said = str(refused.value)
    assert any(word in said for word in ("Write", "five fields", "between", "time zone"))


@pytest.mark.parametrize(
    ("zone", "timing", "after", "expected"),
    [
        # The clocks go forward at 02:00 in Berlin: 02:30 does not exist; it is due at three.
        ("Europe/Berlin", "30 2 * * *", "2026-03-27T12:00",
         ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]),
        # They go back at 03:00: half past two comes twice, and is due at its first.
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00",
         ["2026-10-25T00:30", "2026-10-26T01:30", "2026-10-27T01:30"]),
        ("America/New_York", "30 2 * * *", "2026-03-07T12:00",
         ["2026-03-08T07:00", "2026-03-09T06:30"]),
        ("America/New_York", "30 1 * * *", "2026-10-31T12:00",
         ["2026-11-01T05:30", "2026-11-02T06:30"]),
        # Asked in the second of the two hours, the first is over.
        ("America/New_York", "30 1 * * *", "2026-11-01T06:10", ["2026-11-02T06:30"]),
        # What is due all the time is due in both hours, and in none that does not exist.
        ("Europe/Berlin", "0 * * * *", "2026-10-24T23:30",
         ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00", "2026-10-25T03:00"]),
        ("Europe/Berlin", "*/30 * * * *", "2026-03-29T00:10",
         ["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30"]),
        ("UTC", "0 0 29 2 *", "2026-01-01T00:00", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("UTC", "0 0 L * *", "2027-12-31T12:00",
         ["2028-01-31T00:00", "2028-02-29T00:00", "2028-03-31T00:00"]),
        ("UTC", "every 6h", "2026-11-16T05:59", ["2026-11-16T06:00", "2026-11-16T12:00"]),
        ("UTC", "at 2026-12-24T18:00:00+00:00", "2026-11-16T00:00", ["2026-12-24T18:00"]),
        ("UTC", "at 2026-12-24T18:00:00+00:00", "2026-12-24T18:00", []),
    ],
)  # fmt: skip
def test_the_moments_of_a_timing(zone: str, timing: str, after: str, expected: list[str]) -> None:
    assert moments(timing, zone, after, len(expected) or 1) == expected


timings = st.one_of(
    st.sampled_from(["0 3 * * *", "*/7 * * * *", "30 2 * * *", "0 0 1 * *", "15 1 * * 0"]),
    st.integers(1, 100_000).map(lambda seconds: read_timing(f"every {seconds}s")),
)


@given(
    timing=timings,
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    start=st.integers(0, 300 * 86_400).map(lambda s: at("2026-01-01T00:00") + timedelta(seconds=s)),
    late=st.integers(0, 3 * 86_400).map(lambda s: timedelta(seconds=s)),
)
def test_the_latest_tick_is_the_last_of_all(
    timing: str, zone: str, start: datetime, late: timedelta
) -> None:
    first = next(ticks_after(timing, zone, start))
    now = first + late
    every = [first]
    for moment in islice(ticks_after(timing, zone, first), 300_000):
        if moment > now:
            break
        every.append(moment)

    assert latest_tick(timing, zone, first=first, now=now) == every[-1]
    assert every == sorted(set(every))


def test_a_tick_is_the_same_for_every_caller() -> None:
    one, other = (schedule(every="1m", jitter="10m") for _ in range(2))
    tick = tick_of(one, NOON)

    assert tick == tick_of(other, NOON.astimezone())
    assert UUID(tick.id).version == 7
    assert tick.id[:13] == f"{int(NOON.timestamp() * 1000):012x}"[:8] + "-" + tick.id[9:13]
    assert NOON <= tick.due < NOON + timedelta(minutes=10)
    assert tick.id != tick_of(one, NOON + timedelta(minutes=1)).id
    assert tick.id != tick_of(schedule("other", every="1m"), NOON).id
    dues = {tick_of(one, NOON + timedelta(minutes=n)).due.microsecond for n in range(20)}
    assert len(dues) > 10


@pytest.mark.parametrize(
    ("catch_up", "late", "ticks", "following"),
    [
        ("one", "0:00", ["12:00"], "12:01"),
        ("one", "0:00:59", ["12:00"], "12:01"),
        ("one", "3:00:30", ["15:00"], "15:01"),
        ("none", "0:00:30", ["12:00"], "12:01"),
        ("all", "0:03:10", ["12:00", "12:01", "12:02", "12:03"], "12:04"),
    ],
)
def test_missed_ticks_are_caught_up_on_as_configured(
    catch_up: Any, late: str, ticks: list[str], following: str
) -> None:
    hours, minutes, *seconds = map(int, late.split(":"))
    now = NOON + timedelta(hours=hours, minutes=minutes, seconds=sum(seconds))
    said = schedule(every="1m", catch_up=catch_up, overlap=True)
    turn = turn_of(planned(said, next_at=NOON, now=now))

    assert [f"{tick.at:%H:%M}" for tick in turn.ticks] == ticks
    assert (turn.expected, f"{turn.next_at:%H:%M}") == (NOON, following)


def test_who_wants_nothing_late_gets_nothing_late() -> None:
    said = schedule(cron="0 12 * * *", catch_up="none")
    turn = turn_of(planned(said, next_at=NOON, now=NOON + timedelta(minutes=2)))

    assert turn.ticks == []
    assert turn.next_at == NOON + timedelta(days=1)


def test_catching_up_on_all_is_done_in_bounded_turns() -> None:
    said = schedule(every="1s", catch_up="all", overlap=True)
    now, first, seen = NOON + timedelta(seconds=250), NOON, []
    while first <= now:
        turn = turn_of(planned(said, next_at=first, now=now))
        assert len(turn.ticks) <= TICKS_MAX
        seen += [tick.at for tick in turn.ticks]
        assert turn.next_at is not None
        first = turn.next_at

    assert seen == [NOON + timedelta(seconds=n) for n in range(251)]


def test_what_was_to_run_once_is_over_after_it() -> None:
    said = schedule(at=NOON)
    turn = turn_of(planned(said, next_at=NOON, now=NOON + timedelta(hours=9)))

    assert ([tick.at for tick in turn.ticks], turn.next_at) == ([NOON], None)
    assert next_tick(said, after=NOON) is None


def test_a_schedule_keeps_its_spec_and_how_it_is_delivered() -> None:
    how = Delivery(
        queue="q",
        priority=7,
        timeout=timedelta(seconds=3),
        retry=Retry(attempts=4),
        labels={"a": "b"},
    )
    said = schedule(how=how, every="1m")

    assert said.spec.text == '{"task":"t","version":1,"args":[1.0],"kwargs":{"b":1,"a":2}}'
    assert said.delivery.retry == how.retry
    assert (said.delivery.queue, said.delivery.priority) == ("q", 7)
    assert said.delivery.timeout == how.timeout
    assert said.delivery.labels == {"a": "b", "schedule": "s"}
    assert said.unique_key == "schedule:s"
    assert schedule(every="1m", overlap=True).unique_key is None
    assert said.digest != schedule(how=how, every="2m").digest


@pytest.mark.parametrize(
    ("name", "how", "timing"),
    [
        ("s", None, {"cron": "0 3 * * *", "every": "1m"}),
        ("s", None, {"zone": "UTC"}),
        ("s", None, {"cron": "0 3 * * *", "zone": "Mars/Base"}),
        ("s", None, {"cron": "0 3 * * *", "zone": "../etc/passwd"}),
        ("s", None, {"at": datetime(2026, 1, 1)}),  # noqa: DTZ001 -- that is what is refused.
        ("s", None, {"at": "2030-01-01T00:00Z"}),
        ("s", None, {"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))}),
        ("s", None, {"cron": "at 9999-12-31T23:59-05:00"}),
        ("s", None, {"cron": "0 3 * * *", "zone": "localtime"}),
        ("s", None, {"every": "1m", "jitter": "2d"}),
        ("s", None, {"every": "1m", "catch_up": "some"}),
        ("s", None, {"every": "1m", "catch_up": "all"}),
        ("s p a c e", None, {"every": "1m"}),
        ("s" * 151, None, {"every": "1m"}),
        ("s", Delivery(run_after="1m"), {"every": "1m"}),
        ("s", Delivery(unique_key="k"), {"every": "1m", "overlap": True}),
        ("s", Delivery(labels={"tick": "x"}), {"every": "1m"}),
        ("s", Delivery(labels={str(n): "x" for n in range(31)}), {"every": "1m"}),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(
    name: str, how: Delivery | None, timing: dict[str, Any]
) -> None:
    with pytest.raises(BadOption):
        schedule(name, how, **timing)
