# SPDX-License-Identifier: MIT
"""A small app whose task returns what its process has imported."""

import sys

from byrote import App

app = App()


@app.task
def loaded() -> list[str]:
    return sorted(sys.modules)
