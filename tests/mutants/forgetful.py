# SPDX-License-Identifier: MIT
"""Byrote without the record of steps that failed: a saga is compensated by half.

It exists to show that the tests of sagas notice; it is not part of the package that is installed.
"""

from byrote.executors.runtime.steps.ledger import Ledger, StepScript
from tests.tasks.sagas import app


def settle(ledger: Ledger) -> StepScript[None]:
    """Write nothing."""
    del ledger
    yield from ()


Ledger.settle = settle  # type: ignore[method-assign]
__all__ = ["app"]
