# SPDX-License-Identifier: MIT
"""Helpers for tests of Byrote and of its users."""

from byrote.testing.clock import FakeClock

__all__ = ["FakeClock"]
