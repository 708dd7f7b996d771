# SPDX-License-Identifier: MIT
"""Explains why a run is not executed, from facts that the store found. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches

import msgspec

from byrote.core.duration import duration, spoken
from byrote.core.errors import BadOption
from byrote.core.text.names import bare_name

FAULT = "unknown_task"
"""The kind of fault of a run that ended because no live worker knew its task."""


SAME_MAX = 3
"""Tasks of the same bare name that a message lists."""
LEAST, MOST = timedelta(minutes=1), timedelta(days=3650)


class UnservedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task with ready runs that no live worker of their queue knows."""

    queue: str
    task: str
    version: int
    since: datetime
    waited_s: float
    """How long live workers have served the queue without one that knows the task."""
    known: Sequence[str] = ()
    """The tasks that live workers know, as `name@version`."""
    unserved_for: timedelta | None = None
    """How long the queue's runs wait for such a worker; None: without limit."""
    runs: int = 0
    """How many of them are among the first runs in line, when they were noted."""

    @property
    def key(self) -> str:
        """The task as `name@version`."""
        return f"{self.task}@{self.version}"

    @property
    def nearest(self) -> str:
        """The most similar task that live workers know; empty if none is similar."""
        return nearest(self.key, self.known)


class UnservedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended because no live worker knew its task."""

    id: str
    queue: str
    task: str
    version: int
    attempt: int


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a run that decide whether a worker can claim it."""

    status: str
    queue: str
    task: str
    version: int
    wait_reason: str | None
    due: datetime | None
    paused: bool
    served: bool
    """Whether a live worker serves the queue."""
    known: bool
    """Whether a live worker of the queue knows the task."""
    tasks: Sequence[str]
    unserved_for: timedelta | None

    @property
    def why(self) -> str:
        """Why it is not executed now, in a sentence; empty if nothing prevents it."""
        key = f"{self.task}@{self.version}"
        if self.status == "WAITING":
            due = "" if self.due is None else f", due {self.due:%Y-%m-%d %H:%M:%S %Z}"
            return f"It waits ({self.wait_reason}{due})."
        if self.status != "READY":
            return ""
        if self.paused:
            return f"The queue {self.queue} is paused; `byrote queues resume {self.queue}`."
        if not self.served:
            return f"No live worker serves the queue {self.queue}."
        if not self.known:
            unknown = f"No live worker of the queue {self.queue} knows {key}"
            return f"{unknown}{like(key, self.tasks)}. {end_of(self.unserved_for)}"
        return "It waits for a free worker: live workers serve its queue and know its task."


def patience(text: str) -> timedelta | None:
    """Parse how long a queue waits, as in `2h`; None for `never`. Raises BadOption."""
    if text == "never":
        return None
    try:
        found = duration(text)
    except ValueError as error:
        raise BadOption(f"{error} Or use `never`.") from None
    if not LEAST <= found <= MOST:
        raise BadOption(f"Use a duration from 1 minute to 3650 days, or `never`, not {text!r}.")
    return found


def nearest(key: str, known: Sequence[str]) -> str:
    """Returns the task that is most similar to `name@version`: its other versions first.

    Several versions, or tasks whose functions have the same name are separated by commas.
    """
    name = key.rpartition("@")[0]
    others = [one for one in known if one.rpartition("@")[0] == name]
    same = [one for one in known if bare_name(one.rpartition("@")[0]) == bare_name(name)]
    close = others[-SAME_MAX:] or same[:SAME_MAX] or get_close_matches(key, list(known), 1)
    if not close:
        # A misspelt function name without its module is not similar to a long name.
        last = {bare_name(one.rpartition("@")[0]): one for one in known}
        close = [last[one] for one in get_close_matches(bare_name(name), list(last), 1)]
    return ", ".join(close)


def like(key: str, known: Sequence[str]) -> str:
    """Returns the nearest task as the end of a sentence; empty without one."""
    found = nearest(key, known)
    return f"; the nearest that is known is {found}" if found else ""


def end_of(unserved_for: timedelta | None) -> str:
    """Returns a sentence on how such a run ends."""
    if unserved_for is None:
        return "It waits for ever."
    return f"It ends FAILED ({FAULT}) once that has been so for {spoken(unserved_for)}."
