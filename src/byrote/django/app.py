# SPDX-License-Identifier: MIT
"""The app that hands of a Django worker load: `byrote.django.app:ALIAS`, one per backend.

Its tasks are those of every installed app's `tasks` module. Other tasks are imported by the path
of their function when a run names them, as Django's Tasks require.
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
    """A registry that imports unknown tasks by their path."""

    def __init__(self, attempts: Attempts) -> None:
        super().__init__()
        self._attempts = attempts

    def find(self, name: str, version: int) -> Task:
        """Return the task of this name, importing it if necessary; raises UnknownTask."""
        try:
            return super().find(name, version)
        except UnknownTask:
            path = self._attempts.backend.path_of(name)
            if path is None or version != VERSION:
                raise
        # The supervisor treats unknown tasks as sync: this one runs in a thread without a loop.
        task = self._attempts.task_of(definition_at(path), threaded=True)
        self.add(task)
        return task


class DjangoApp:
    """The tasks of a Django project as the backend of one alias executes them."""

    url = None
    schema = None
    """The supervisor knows it, from SCHEMA."""
    logs_failures = True
    """Django's receiver of `task_finished` does."""

    def __init__(self, backend: Backend) -> None:
        watch_sessions()
        ask_patiently()
        attempts = Attempts(backend)
        self.registry = Found(attempts)
        for path in sorted(KNOWN):
            try:
                definition = definition_at(path)
            except ImportError:
                continue  # Its module attribute was replaced after definition: no run can name it.
            self.registry.add(attempts.task_of(definition))
        self.schedules = schedules_of(backend.alias)
        self.on_finished = attempts.signals.on_finished
        self.flush = attempts.signals.flush


def backend_of(alias: str) -> Backend:
    """Return the Byrote backend with this alias; raises BadOption with the list of aliases."""
    ours = [one for one in compat.task_backends if _is_ours(one)]
    if alias in ours:
        found: Backend = compat.task_backends[alias]
        return found
    names = ", ".join(ours) or "none"
    raise BadOption(f"TASKS has no Byrote backend {alias!r}. There are: {names}.")


def _is_ours(alias: str) -> bool:
    return isinstance(compat.task_backends[alias], Backend)


def imports(backend: Backend, unknown: UnknownTaskRef) -> bool:
    """Whether a task belongs to this backend and can be imported here."""
    path = backend.path_of(unknown.task)
    if path is None or unknown.version != VERSION:
        return False
    try:
        definition_at(path)
    except Exception:  # noqa: BLE001 -- a module may raise anything; the task cannot run here then.
        return False
    return True


def set_up() -> None:
    """Load Django and the project's tasks, once."""
    if not apps.ready:
        django.setup()
    print_once()
    autodiscover_modules("tasks")


def print_once() -> None:
    """Remove the stream handlers of Django's logger if Byrote's handler is installed.

    With DEBUG, Django prints its records as well, which would write each line twice.
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
