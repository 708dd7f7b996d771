# SPDX-License-Identifier: MIT
"""What the hands of a Django worker load: `byrote.django.app:ALIAS`, one app per backend.

Its tasks are those of every installed app's `tasks` module. Others are imported when a run names
them, by the path of their function, as Django's contract has it.
"""

import logging
from typing import Any

import django
from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from byrote.core.errors import BadOption, UnknownTask
from byrote.core.ports.replies import UnknownTaskRef
from byrote.core.task import Registry, Task
from byrote.django import compat
from byrote.django.backend.backend import KNOWN, VERSION, Backend, definition_at
from byrote.django.backend.schedules import schedules_of
from byrote.django.worker.attempt import Attempts
from byrote.django.worker.outages import ask_patiently
from byrote.django.worker.sessions import watch_sessions
from byrote.observe.logs import LogHandler


class Found(Registry):
    """A registry that imports what it does not know yet."""

    def __init__(self, attempts: Attempts) -> None:
        super().__init__()
        self._attempts = attempts

    def find(self, name: str, version: int) -> Task:
        """The task by this name, imported now if need be."""
        try:
            return super().find(name, version)
        except UnknownTask:
            path = self._attempts.backend.path_of(name)
            if path is None or version != VERSION:
                raise
        # Whoever sent this run here took it for a sync one: it has a thread, and no loop.
        task = self._attempts.task_of(definition_at(path), threaded=True)
        self.add(task)
        return task


class DjangoApp:
    """The tasks of a Django project as the backend of one alias executes them."""

    url = None

    def __init__(self, backend: Backend) -> None:
        watch_sessions()
        ask_patiently()
        attempts = Attempts(backend)
        self.registry = Found(attempts)
        for path in sorted(KNOWN):
            try:
                definition = definition_at(path)
            except ImportError:
                continue  # Defined, and then hidden behind another name: no run can name it.
            self.registry.add(attempts.task_of(definition))
        self.schedules = schedules_of(backend.alias)
        self.settled = attempts.herald.settled
        self.farewell = attempts.herald.farewell


def backend_of(alias: str) -> Backend:
    """The Byrote backend with this alias; BadOption says which there are."""
    ours = [one for one in compat.task_backends if _is_ours(one)]
    if alias in ours:
        found: Backend = compat.task_backends[alias]
        return found
    names = ", ".join(ours) or "none"
    raise BadOption(f"TASKS has no Byrote backend {alias!r}. There are: {names}.")


def _is_ours(alias: str) -> bool:
    return isinstance(compat.task_backends[alias], Backend)


def imports(backend: Backend, stranger: UnknownTaskRef) -> bool:
    """Whether a run is one of this backend's, of a task that can be imported here."""
    path = backend.path_of(stranger.task)
    if path is None or stranger.version != VERSION:
        return False
    try:
        definition_at(path)
    except Exception:  # noqa: BLE001 -- a module may raise anything; it is not ours to run then.
        return False
    return True


def set_up() -> None:
    """Load Django and the project's tasks, once."""
    if not apps.ready:
        django.setup()
    print_once()
    autodiscover_modules("tasks")


def print_once() -> None:
    """Let records of Django's loggers be printed by Byrote's handler only, where there is one.

    With DEBUG, Django prints them as well, which would write each line twice.
    """
    logger = logging.getLogger("django")
    if not logger.propagate or not any(isinstance(h, LogHandler) for h in logging.root.handlers):
        return
    for handler in list(logger.handlers):
        if type(handler) is logging.StreamHandler:
            logger.removeHandler(handler)


def __getattr__(alias: str) -> Any:
    if alias.startswith("__"):
        raise AttributeError(alias)
    set_up()
    return DjangoApp(backend_of(alias))
