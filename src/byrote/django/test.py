# SPDX-License-Identifier: MIT
"""Helpers for projects' tests: run tasks in the test's own transaction.

class SignUp(TestCase):
    def test_a_new_user_gets_a_mail(self):
        self.client.post("/sign-up/", {"email": "a@example.com"})
        assert_enqueued(send_welcome, email="a@example.com")
        run_tasks()
        self.assertEqual(len(mail.outbox), 1)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from byrote.django import compat
from byrote.django.backend.backend import Backend
from byrote.django.models import TaskRun
from byrote.django.testing.testbed import Testbed

ATTEMPTS_MAX = 10_000
"""Attempts after which `run_tasks` raises, because tasks seem to enqueue each other endlessly."""


def run_tasks(
    queue: str | None = None,
    *,
    backend: str = "default",
    until_empty: bool = True,
    include_deferred: bool = False,
    raise_errors: bool = True,
    now: datetime | None = None,
) -> list[Any]:
    """Execute all due tasks on the test's own connection; returns the results of all attempts.

    Tasks that tasks enqueue run too, unless `until_empty` is False. Time advances by itself to the
    next retry, and with `include_deferred` to the next deferred task; `now` sets it. With
    `raise_errors` the error of a task that failed for good is raised once it is stored.
    """
    bed = Testbed(_ours(backend), queue=queue, raise_errors=raise_errors)
    with bed.time(now):
        while True:
            bed.round()
            if bed.attempts > ATTEMPTS_MAX:
                raise RuntimeError(
                    f"Tasks are still due after {ATTEMPTS_MAX:,} attempts; "
                    "do they enqueue each other endlessly?"
                )
            if not until_empty or not (
                bed.ready() or bed.move_on(include_deferred=include_deferred)
            ):
                return bed.results()


def _ours(alias: str) -> Backend:
    found = compat.task_backends[alias]
    if isinstance(found, Backend):
        return found
    raise TypeError(f"TASKS[{alias!r}] is not a Byrote backend; there is nothing to run.")


@contextmanager
def captured_tasks() -> Iterator[list[Any]]:
    """Yield a list that collects the results of all tasks enqueued meanwhile, on any backend."""
    sent: list[Any] = []

    def keep(task_result: Any, **_more: Any) -> None:
        sent.append(task_result)

    compat.task_enqueued.connect(keep, weak=False)
    try:
        yield sent
    finally:
        compat.task_enqueued.disconnect(keep)


def assert_enqueued(task: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result of an enqueued call; without arguments, of any call of the task.

    Raises AssertionError if there is none.
    """
    waiting = _waiting(task)
    matching = [one for one in waiting if not (args or kwargs) or _is_call(one, args, kwargs)]
    if matching:
        return matching[-1]
    others = "".join(f"\n  {_shown(one.args, one.kwargs)}" for one in waiting) or " none."
    raise AssertionError(
        f"{task.name}{_shown(args, kwargs) if args or kwargs else ''} was not enqueued; "
        f"enqueued calls of {task.name}:{others}"
    )


def assert_not_enqueued(task: Any, *args: Any, **kwargs: Any) -> None:
    """Raise AssertionError if such a call is enqueued; without arguments, any call of the task."""
    try:
        found = assert_enqueued(task, *args, **kwargs)
    except AssertionError:
        return
    raise AssertionError(f"{task.name}{_shown(found.args, found.kwargs)} was enqueued.")


def _waiting(task: Any) -> list[Any]:
    backend = task.get_backend()
    if not isinstance(backend, Backend):
        known = getattr(backend, "results", [])
        return [one for one in known if one.task.func is task.func]
    stored = TaskRun.objects.using(backend.database).filter(
        task_path=backend.name_of(task.module_path), status__in=["READY", "WAITING"]
    )
    return [backend.get_result(str(run.result_id)) for run in stored.order_by("result_id")]


def _is_call(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool(result.args == list(args) and result.kwargs == kwargs)


def _shown(args: Any, kwargs: dict[str, Any]) -> str:
    words = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
    return f"({', '.join(words)})"
