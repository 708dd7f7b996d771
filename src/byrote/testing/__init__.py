# SPDX-License-Identifier: MIT
"""What Byrote gives to tests, its own and its users'."""

from byrote.testing.clock import FakeClock

__all__ = ["FakeClock"]
