# SPDX-License-Identifier: MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byrote.worker.claiming.shares import Shares

pytestmark = pytest.mark.pure

WEIGHTS = st.dictionaries(
    st.sampled_from("abcdefgh"), st.integers(1, 1_000), min_size=1, max_size=8
)


def take(shares: Shares, limit: int, dry: tuple[str, ...] = ()) -> dict[str, int]:
    """Claim once, from queues that have enough but for some that have nothing."""
    quotas = shares.split(limit, shares.queues)
    claimed = {queue: quota for queue, quota in quotas.items() if queue not in dry}
    shares.note_claims(claimed, [queue for queue in quotas if queue in dry], shares.queues)
    return claimed


@given(WEIGHTS, st.lists(st.integers(1, 300), min_size=1, max_size=30))
def test_shares_add_up_to_the_limit_every_time(weights: dict[str, int], limits: list[int]) -> None:
    shares = Shares(weights)
    for limit in limits:
        quotas = take(shares, limit)
        assert sum(quotas.values()) == limit
        assert all(quota > 0 for quota in quotas.values())
        assert set(quotas) <= set(weights)


@given(WEIGHTS, st.integers(1, 50))
def test_in_the_long_run_every_queue_gets_its_weights_worth(
    weights: dict[str, int], limit: int
) -> None:
    shares, got = Shares(weights), dict.fromkeys(weights, 0)
    for _ in range(200):
        for queue, quota in take(shares, limit).items():
            got[queue] += quota

    for queue, weight in weights.items():
        fair = 200 * limit * weight / sum(weights.values())
        assert abs(got[queue] - fair) <= len(weights) + 1


def test_even_the_smallest_weight_does_not_starve() -> None:
    shares = Shares({"big": 1_000, "small": 1})
    got = sum(take(shares, 1).get("small", 0) for _ in range(3_003))

    assert got == pytest.approx(3, abs=1)


@given(st.lists(st.booleans(), min_size=400, max_size=400), st.integers(1, 3))
def test_claims_that_find_nothing_cost_no_queue_its_share(found: list[bool], limit: int) -> None:
    shares, got = Shares({"many": 3, "few": 1}), {"many": 0, "few": 0}
    for something in found:
        for queue, quota in take(shares, limit, () if something else ("many", "few")).items():
            got[queue] += quota

    assert got["few"] == pytest.approx(sum(got.values()) / 4, abs=2)


@given(st.integers(1, 7), st.integers(1, 400))
def test_a_queue_that_was_empty_gets_its_share_and_no_more_when_it_fills(
    limit: int, empty: int
) -> None:
    shares = Shares({"many": 3, "few": 1})
    for _ in range(empty):
        take(shares, limit, dry=("few",))
    got = sum(take(shares, limit).get("few", 0) for _ in range(40))

    assert got == pytest.approx(40 * limit / 4, abs=2)


@given(st.lists(st.sets(st.sampled_from("abc"), min_size=1), max_size=60), st.integers(1, 20))
def test_what_some_queues_cannot_use_is_shared_by_the_others(
    rounds: list[set[str]], limit: int
) -> None:
    shares = Shares({"a": 5, "b": 1, "c": 1})
    for among in rounds:
        quotas = shares.split(limit, sorted(among))
        assert set(quotas) <= among
        assert sum(quotas.values()) == limit


def test_queues_keep_the_order_they_were_given_in() -> None:
    assert Shares({"b": 1, "a": 2}).queues == ["b", "a"]
