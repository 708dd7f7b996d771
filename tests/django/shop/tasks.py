# SPDX-License-Identifier: MIT
"""Tasks of the test project."""

from typing import Any

from byrote.django import task
from tests.django.shop.models import Note


@task
def echo(*args: Any, **kwargs: Any) -> Any:
    return [list(args), kwargs]


@task
def add(a: int, b: int) -> int:
    return a + b


@task(queue_name="mail", priority=7)
def note(text: str) -> str:
    Note.objects.create(text=text)
    return text


@task
async def wait(value: Any) -> Any:
    return value
