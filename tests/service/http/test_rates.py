# SPDX-License-Identifier: MIT
"""The rate of a token, as a bucket that fills with time."""

import pytest

from byrote.service.http.auth import Bucket
from byrote.wire.problems import TooMany

pytestmark = pytest.mark.pure


def test_a_clock_that_goes_back_takes_nothing_from_a_token() -> None:
    bucket = Bucket(3, now=100.0)
    for moment in (100.0, 97.0, 98.0):
        bucket.spend(moment)

    with pytest.raises(TooMany):
        bucket.spend(99.0)
    bucket.spend(100.5)
