# SPDX-License-Identifier: MIT
"""The only real clocks: monotonic for deadlines here, wall time for people to read."""

import time
from datetime import UTC, datetime

monotonic = time.monotonic


def now() -> datetime:
    """Wall time, for log lines and ids; nothing is ever decided by it."""
    return datetime.now(UTC)
