# SPDX-License-Identifier: MIT
"""A trivial app: one task, which returns when it began."""

import time

from byrote import App

app = App()


@app.task(name="footprint.began")
def began() -> int:
    """Return the machine's monotonic time."""
    return time.monotonic_ns()
