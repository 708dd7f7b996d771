# SPDX-License-Identifier: MIT
"""The protocol of an app: what workers, hands and replays use of the object at `module:name`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from byrote.core.ports.announced import TaskPolicy
from byrote.core.schedule.schedule import Schedule
from byrote.core.task import Registry

type OnFinished = Callable[[Sequence[tuple[str, str | None]]], None]
"""Receives `(run id, letter of the verdict)` of stored outcomes; None for a lost lease."""


class Announced(msgspec.Struct, frozen=True):
    """What a worker announces about the tasks of its app besides their names."""

    queues: Sequence[str] = ()
    """The queues of its tasks and schedules: a worker's default queues."""
    aliases: Sequence[str] = ()
    """Default aliases, as `name@version`; tasks of other workers have precedence."""
    policies: Mapping[str, TaskPolicy] = {}
    """Delivery options by `name@version`, for callers without the app; may be empty."""

    @property
    def description(self) -> dict[str, Any]:
        """The fields of a registration that it adds."""
        policies = {"policies": self.policies} if self.policies else {}
        return {"aliases": list(self.aliases), **policies}


class AppLike(Protocol):
    """An app; `byrote.App` and the app of a Django backend implement it."""

    @property
    def registry(self) -> Registry:
        """The tasks that the app's hands can execute."""

    @property
    def url(self) -> str | None:
        """The database that the app names; None if the settings decide."""

    @property
    def schema(self) -> str | None:
        """The schema of Byrote's tables that the app names; None if the settings decide."""

    @property
    def schedules(self) -> Sequence[Schedule]:
        """The schedules that a worker stores when it starts."""

    @property
    def on_finished(self) -> OnFinished | None:
        """Called in a hand after outcomes of its runs were stored; it must not block.

        None if the app needs no reports: the supervisor then sends none, which saves a message
        per batch.
        """

    @property
    def logs_failures(self) -> bool:
        """Whether the app logs runs that fail for good; Byrote then logs only their retries."""

    def flush(self) -> None:
        """Finish the work of `on_finished`; called once before a hand exits."""


class WithoutReports:
    """Base of apps whose hands need no reports of stored outcomes."""

    on_finished: OnFinished | None = None
    logs_failures = False

    def flush(self) -> None:
        """Do nothing: no work is left when a hand exits."""
