# SPDX-License-Identifier: MIT
"""Tasks as live workers announce them, and which of them a name on a command line means. Pure."""

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from byrote.core.policy import ONCE, Retry
from byrote.core.spec import Delivery
from byrote.core.text.names import bare_name
from byrote.core.unserved import like


class TaskPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The delivery options of a task, as workers announce them."""

    queue: str = "default"
    priority: int = 0
    timeout_ms: int | None = None
    retry: Retry = ONCE
    labels: dict[str, str] | None = None

    @property
    def delivery(self) -> Delivery:
        """The same as Delivery."""
        ms = self.timeout_ms
        timeout = None if ms is None else timedelta(milliseconds=ms)
        labels, priority = self.labels, self.priority
        return Delivery(
            queue=self.queue, priority=priority, timeout=timeout, retry=self.retry, labels=labels
        )


def policy_of(delivery: Delivery) -> TaskPolicy:
    """The announced form of a task's delivery options."""
    timeout = delivery.timeout
    return TaskPolicy(
        queue=delivery.queue,
        priority=delivery.priority,
        timeout_ms=None if timeout is None else timeout // timedelta(milliseconds=1),
        retry=delivery.retry,
        labels=None if delivery.labels is None else dict(delivery.labels),
    )


class AnnouncedTask(msgspec.Struct, frozen=True):
    """A task that live workers know."""

    key: str
    """As `name@version`."""
    alias: bool
    """Whether it is only a default alias of another task."""
    policies: Sequence[TaskPolicy] = ()
    """The different policies that workers announce of it."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.rpartition("@")[0]

    @property
    def version(self) -> int:
        """Its version."""
        return int(self.key.rpartition("@")[2])


class NamedTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task that a name on a command line means."""

    name: str
    version: int
    policy: TaskPolicy | None = None
    """Its policy; None if it is not known, or not the same for all workers."""
    warning: str = ""
    """Why the run may not be executed as expected; empty if nothing is known against it."""


def named_task(name: str, version: int | None, known: Sequence[AnnouncedTask]) -> NamedTask:
    """Return the announced task of this name, or whose function has this name.

    Without a version, it is the newest. A name that no live worker knows stays as it is.
    """
    own = [one for one in known if not one.alias]
    found = [one for one in own if one.name == name]
    alike = sorted({one.name for one in own if bare_name(one.name) == name})
    if not found and len(alike) == 1:
        name = alike[0]
        found = [one for one in own if one.name == name]
    found = found or [one for one in known if one.name == name and len(alike) < 2]
    wanted = version or max((one.version for one in found), default=1)
    task = next((one for one in found if one.version == wanted), None)
    if task is None:
        warning = _unknown(f"{name}@{wanted}", alike if not found else [], known)
        return NamedTask(name=name, version=wanted, warning=warning)
    if len(task.policies) > 1:
        count = len(task.policies)
        warning = (
            f"live workers announce {count} different policies of {task.key}, so none is used; "
            "set --queue, --attempts and --timeout."
        )
        return NamedTask(name=name, version=wanted, warning=warning)
    policy = task.policies[0] if task.policies else None
    return NamedTask(name=name, version=wanted, policy=policy)


def _unknown(key: str, alike: Sequence[str], known: Sequence[AnnouncedTask]) -> str:
    if not known:
        return f"no worker is live, so the queue, retries and timeout of {key} are not known."
    if alike:
        return f"{key} could be {' or '.join(alike)}; no live worker knows it by that name."
    return f"no live worker knows {key}{like(key, [one.key for one in known])}."
