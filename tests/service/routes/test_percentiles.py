# SPDX-License-Identifier: MIT
"""Percentiles of buckets."""

from byrote.service.routes.stats import percentiles, seconds_of


def test_a_bucket_stands_for_its_seconds_within_a_tenth() -> None:
    for bucket in range(30, 180):
        low, high = 2 ** (bucket / 4) / 1e6, 2 ** ((bucket + 1) / 4) / 1e6
        assert high / seconds_of(bucket) < 1.1
        assert seconds_of(bucket) / low < 1.1


def test_a_percentile_has_that_share_of_values_below_it() -> None:
    found = percentiles({40: 50, 60: 45, 80: 5})

    assert (found.p50, found.p95, found.p99) == (seconds_of(40), seconds_of(60), seconds_of(80))
    assert percentiles({}).p50 is None
