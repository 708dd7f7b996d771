# SPDX-License-Identifier: MIT
"""Tasks that no worker imports by itself: this is no `tasks` module."""

from byrote.django import task


@task
def hidden(value: int) -> int:
    return value


@task
async def ahidden(value: int) -> int:
    return value
