# SPDX-License-Identifier: MIT
"""An app with a function `report`."""

from byrote import App

app = App()


@app.task
def report(month: int) -> str:
    """Say which app executed it."""
    return f"shop {month}"
