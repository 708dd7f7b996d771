# SPDX-License-Identifier: MIT
"""Tasks that no worker imports by itself: this is no `tasks` module."""

from typing import Any

from asgiref.sync import sync_to_async

from byrote.django import task
from tests.django.shop.tasks import session, soil


@task
def hidden(value: int) -> int:
    return value


@task
async def ahidden(value: int) -> int:
    return value


@task
async def asoil_hidden(statement: str) -> None:
    await sync_to_async(soil.func)(statement)


@task(takes_context=True)
async def asession_hidden(context: Any) -> Any:
    return await sync_to_async(session.func)(context)
