# SPDX-License-Identifier: MIT
"""Byrote without the record of steps that failed: a saga is compensated by half.

It exists to show that the tests of sagas notice; it is not part of the package that is installed.
"""

from byrote.executors.runtime.steps.ledger import Ledger, StepScript
from tests.tasks.sagas import app


def record_caught(ledger: Ledger) -> StepScript[None]:
    """Write nothing."""
    del ledger
    yield from ()


Ledger.record_caught = record_caught  # type: ignore[method-assign]
__all__ = ["app"]
