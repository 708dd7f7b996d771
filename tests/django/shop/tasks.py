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


@task(takes_context=True)
def where(context: Any) -> Any:
    result = context.task_result
    return [result.id, context.attempt, result.worker_ids, str(result.status)]


@task(max_attempts=3, backoff=lambda _error, _result: 0)
def fail(message: str) -> None:
    raise ValueError(message)
