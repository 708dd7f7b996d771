# SPDX-License-Identifier: MIT
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from byrote.core.errors import BadOption
from byrote.core.progress import DATA_MAX, MESSAGE_MAX, Reported, progress_of, report_of, spoken
from byrote.core.state import Status

pytestmark = pytest.mark.pure

BEGAN = datetime(2026, 11, 16, 9, tzinfo=UTC)


def told(**more: Any) -> Reported:
    fields: dict[str, Any] = {
        "attempt": 1, "percent": 40.0, "done": 400.0, "total": 1_000.0, "message": "importing",
        "data": '{"file":"a.csv"}', "at": BEGAN + timedelta(seconds=30), "began_at": BEGAN,
        "began_percent": 10.0,
    }  # fmt: skip
    return Reported(**fields | more)


@pytest.mark.parametrize(
    ("done", "total", "percent"),
    [(0, 5, 0.0), (3, 5, 60.0), (5, 5, 100.0), (42, None, 42.0), (Decimal("0.5"), None, 0.5),
     (0, 0, 100.0), (1, 3, 33.333333), (1e15, 1e15, 100.0), (5e-324, 1, 0.0)],
)  # fmt: skip
def test_per_cent_are_given_or_derived(done: Any, total: Any, percent: float) -> None:
    assert report_of(done, total).percent == percent


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ((-1,), "0 to 100"), ((100.1,), "0 to 100"), ((6, 5), "6 of 5"), ((-1, 5), "-1 of 5"),
        ((1, 2e15), "1e+15"), (("3", 5), "numbers"), ((True,), "numbers"), ((float("nan"),), "num"),
        ((float("inf"),), "numbers"), ((None,), "numbers"), ((10**400,), "numbers"),
        ((1, 2, "x" * (MESSAGE_MAX + 1)), "500 characters"), ((1, 2, None), "500 characters"),
        ((1, 2, "", {"x": "y" * DATA_MAX}), "4,096"), ((1, 2, "", {"x": object()}), "small JSON"),
        ((1, 2, "", [1]), "JSON object"),
    ],
)  # fmt: skip
def test_invalid_progress_is_refused_with_the_reason(said: tuple[Any, ...], advice: str) -> None:
    with pytest.raises(BadOption, match=advice.replace("+", r"\+")):
        report_of(*said)


def test_text_that_no_database_takes_is_escaped() -> None:
    assert report_of(1, 2, "a\x00b\ud800").message == r"a\x00b\ud800"


def test_an_estimate_goes_on_at_the_pace_so_far() -> None:
    # 30 per cent took 30 seconds, so the other 60 will take a minute.
    assert progress_of(told(), Status.RUNNING, []).eta == BEGAN + timedelta(seconds=90)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"percent": 10.0}, Status.RUNNING),
        ({"at": BEGAN}, Status.RUNNING),
        ({"percent": 10.000001, "at": BEGAN + timedelta(days=300)}, Status.RUNNING),
        ({}, Status.WAITING),
        ({}, Status.SUCCESSFUL),
    ],
    ids=["first-report", "no-time", "never", "waiting", "ended"],
)
def test_without_a_pace_the_estimate_is_none(more: dict[str, Any], status: Status) -> None:
    assert progress_of(told(**more), status, []).eta is None


def test_a_retry_has_no_progress_until_its_first_report() -> None:
    failed = [{"attempt": 1}]
    retrying = progress_of(told(), Status.WAITING, failed)
    again = progress_of(told(attempt=2), Status.RUNNING, failed)
    dead = progress_of(told(), Status.FAILED, failed)

    assert (retrying.percent, retrying.message, retrying.retrying) == (0.0, "", True)
    assert (again.percent, again.retrying) == (40.0, False)
    assert (dead.percent, dead.data, dead.retrying) == (40.0, {"file": "a.csv"}, False)


def test_a_run_that_only_slept_keeps_its_progress() -> None:
    assert progress_of(told(), Status.WAITING, []).percent == 40.0


def test_text_never_shows_100_percent_before_the_end() -> None:
    nearly = progress_of(told(percent=99.99, done=None, total=None, message=""), Status.RUNNING, [])

    assert spoken(nearly) == "99.9 %"
    assert spoken(progress_of(told(), Status.RUNNING, [])) == "40 % (400 of 1,000), importing"
    assert "attempt 1 failed" in spoken(progress_of(told(), Status.READY, [{"attempt": 1}]))
