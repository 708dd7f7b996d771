# SPDX-License-Identifier: MIT
"""An app whose function `report` is another one."""

from byrote import App

app = App()


@app.task
def report(month: int) -> str:
    """Say which app executed it."""
    return f"billing {month}"
