# SPDX-License-Identifier: MIT
"""An app with a task that is named `report`."""

from byrote import App

app = App()


@app.task(name="report")
def monthly(month: int) -> str:
    """Say which app executed it."""
    return f"named {month}"
