# SPDX-License-Identifier: MIT
"""A shadow run's lease in the guise of its original."""

import pytest

from byrote.executors.replayed import Guise, ShownAs
from tests.core.leases import leased

pytestmark = pytest.mark.pure


def test_a_guise_has_the_originals_name_and_the_leases_everything_else() -> None:
    lease = leased()
    guise = Guise(lease, ShownAs("original", "mail", 3))
    guise.hand = 7
    lease.deadline = 5.0

    assert (guise.id, guise.queue, guise.attempt) == ("original", "mail", 3)
    assert (guise.token, guise.deadline, guise.spec_json) == (lease.token, 5.0, lease.spec_json)
    assert lease.hand == 7
    assert lease.id != "original"
