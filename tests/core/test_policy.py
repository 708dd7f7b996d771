# SPDX-License-Identifier: MIT
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.core import policy
from byrote.core.errors import BadOption
from byrote.core.outcome import Cancelled, Crashed, Failed, Fault, Released, Snoozed, Succeeded
from byrote.core.policy import ATTEMPTS_MAX, LOSSES_MAX, ONCE, Retry, judge, retry_of
from tests.core.leases import leased

pytestmark = pytest.mark.pure

FAULT = Fault("raised", "ValueError")
MINUTE = timedelta(minutes=1)
FIXED = msgspec.json.encode(Retry(attempts=3, backoff="fixed", delay_first=MINUTE, jitter=False))

JUDGED = [
    # what happened, to which run, what follows
    (Succeeded("1", "ab"), {}, policy.SUCCEED),
    (Succeeded("1", "ab"), {"charged": 99, "losses": 99}, policy.SUCCEED),
    (Failed(FAULT), {"max_attempts": 1}, policy.FAIL),
    (Failed(FAULT), {"max_attempts": 3, "charged": 2}, policy.FAIL),
    (Failed(FAULT), {"max_attempts": 3, "charged": 1}, policy.RetryIn(MINUTE)),
    (Failed(FAULT), {"max_attempts": 3, "charged": 0, "attempt": 50}, policy.RetryIn(MINUTE)),
    (Failed(FAULT, final=True), {"max_attempts": 3}, policy.FAIL),
    (Failed(FAULT, after=2 * MINUTE), {"max_attempts": 3}, policy.RetryIn(2 * MINUTE)),
    (Failed(FAULT, after=timedelta()), {"max_attempts": 3}, policy.RetryIn(timedelta())),
    (Failed(FAULT, after=MINUTE), {"max_attempts": 1}, policy.FAIL),
    (Failed(FAULT, after=MINUTE, final=True), {"max_attempts": 3}, policy.FAIL),
    (Snoozed(MINUTE), {"max_attempts": 1, "charged": 5}, policy.SnoozeFor(MINUTE)),
    (Snoozed(MINUTE, wait="event", event="e"), {}, policy.SnoozeFor(MINUTE, "event", "e")),
    (Cancelled(), {"max_attempts": 3}, policy.Cancel()),
    (Released(), {"losses": 99}, policy.Release()),
    (Crashed(FAULT), {"losses": 0}, policy.GiveBackCrashed()),
    (Crashed(FAULT), {"losses": LOSSES_MAX - 2}, policy.GiveBackCrashed()),
    (Crashed(FAULT), {"losses": LOSSES_MAX - 1}, policy.FAIL),
]


@pytest.mark.parametrize(("outcome", "run", "verdict"), JUDGED)
def test_judge_returns_the_verdict_of_the_table(
    outcome: Any, run: dict[str, Any], verdict: Any
) -> None:
    assert judge(leased(retry_json=FIXED.decode(), **run), outcome) == verdict


def test_the_budget_counts_what_was_charged_and_not_what_was_claimed() -> None:
    """P5: nine claims that infrastructure spoiled leave the whole budget."""
    run = leased(attempt=10, charged=0, max_attempts=2)

    assert isinstance(judge(run, Failed(FAULT)), policy.RetryIn)


@pytest.mark.parametrize(("age_s", "ends"), [(0, False), (59, False), (61, True)])
def test_a_run_is_not_retried_past_its_greatest_age(age_s: int, ends: bool) -> None:
    rule = Retry(attempts=9, backoff="fixed", delay_first=MINUTE, jitter=False, age_max=2 * MINUTE)
    text = msgspec.json.encode(rule).decode()
    run = leased(max_attempts=9, retry_json=text, age_us=age_s * 1_000_000)

    assert (judge(run, Failed(FAULT)) == policy.FAIL) is ends


def test_a_run_without_its_own_policy_has_the_default_one() -> None:
    assert retry_of(leased(max_attempts=7)) == Retry(attempts=7)


RETRIES = st.builds(
    Retry,
    attempts=st.integers(1, ATTEMPTS_MAX),
    backoff=st.sampled_from(["exponential", "linear", "fixed"]),
    delay_first=st.timedeltas(timedelta(), timedelta(days=36_500)),
    delay_max=st.timedeltas(timedelta(), timedelta(days=36_500)),
    factor=st.floats(1.0, 100.0),
    jitter=st.booleans(),
)
DIGESTS = st.binary(min_size=32, max_size=32)


@given(RETRIES, st.integers(2, ATTEMPTS_MAX), DIGESTS)
def test_a_delay_is_between_zero_and_its_cap(rule: Retry, attempt: int, digest: bytes) -> None:
    delay = rule.delay_before(attempt, digest)

    assert timedelta() <= delay <= rule.delay_max + timedelta(microseconds=1)
    assert delay == rule.delay_before(attempt, digest)


@given(RETRIES, DIGESTS)
def test_a_policy_survives_its_way_through_the_database(rule: Retry, digest: bytes) -> None:
    text = msgspec.json.encode(rule).decode()

    assert retry_of(leased(retry_json=text)) == rule


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        ("exponential", [2, 4, 8, 16, 32, 60, 60]),
        ("linear", [2, 4, 6, 8, 10, 12, 14]),
        ("fixed", [2, 2, 2, 2, 2, 2, 2]),
    ],
)
def test_waits_grow_with_the_backoff(backoff: Any, expected: list[int]) -> None:
    rule = Retry(backoff=backoff, jitter=False, delay_max=MINUTE)
    waits = [rule.delay_before(attempt, bytes(32)).total_seconds() for attempt in range(2, 9)]

    assert waits == expected


@given(DIGESTS)
def test_jitter_takes_a_part_of_the_wait_and_attempts_differ(digest: bytes) -> None:
    rule = Retry(backoff="fixed", delay_first=MINUTE)
    waits = [rule.delay_before(attempt, digest) for attempt in range(2, 22)]

    assert all(timedelta() <= wait <= MINUTE for wait in waits)
    assert len(set(waits)) > 10


def test_jitter_uses_the_whole_wait_evenly() -> None:
    """Full jitter: a herd of specs spreads over all of it, not over its end."""
    rule = Retry(backoff="fixed", delay_first=timedelta(seconds=100))
    waits = [rule.delay_before(2, n.to_bytes(32)).total_seconds() for n in range(2_000)]
    tenths = [sum(1 for wait in waits if t <= wait / 10 < t + 1) for t in range(10)]

    assert min(tenths) > 140
    assert max(tenths) < 260


def test_the_thousandth_attempt_does_not_overflow() -> None:
    rule = Retry(attempts=ATTEMPTS_MAX, factor=100.0, delay_max=timedelta(days=36_500))

    assert rule.delay_before(1_000, bytes(32)) <= timedelta(days=36_500)


@pytest.mark.parametrize(
    "bad",
    [
        {"attempts": 0},
        {"attempts": ATTEMPTS_MAX + 1},
        {"attempts": 2.5},
        {"attempts": True},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"backoff": "random"},
        {"delay_first": "soon"},
        {"delay_first": timedelta(seconds=-1)},
        {"delay_max": -1},
        {"age_max": timedelta(seconds=-1)},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"Retry|retry|back-off|duration"):
        Retry(**bad)


def test_durations_of_a_policy_may_be_written_as_people_write_them() -> None:
    rule = Retry(delay_first="5s", delay_max=600, age_max="1d")

    assert (rule.delay_first, rule.delay_max) == (timedelta(seconds=5), timedelta(minutes=10))
    assert rule.age_max == timedelta(days=1)
    assert ONCE.attempts == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        '{"jitter":0}',
        '{"attempts":0}',
        '{"factor":1e9}',
        '{"delay_max":"soon"}',
    ],
)
def test_an_unreadable_policy_stops_no_worker(text: str) -> None:
    run = leased(max_attempts=3, retry_json=text)

    assert retry_of(run) == Retry()
    assert isinstance(judge(run, Failed(FAULT)), policy.RetryIn)


@pytest.mark.parametrize(
    "wrong", [{"jitter": 0}, {"jitter": "no"}, {"factor": "2"}, {"factor": True}]
)
def test_a_wrong_option_is_refused_where_it_is_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=next(iter(wrong))):
        Retry(**wrong)
