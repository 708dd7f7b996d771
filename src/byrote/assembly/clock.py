# SPDX-License-Identifier: MIT
"""The only real clocks: monotonic time for deadlines, wall time for display."""

import time
from datetime import UTC, datetime

monotonic = time.monotonic


def now() -> datetime:
    """Wall time, for log lines and ids only; no decision depends on it."""
    return datetime.now(UTC)
