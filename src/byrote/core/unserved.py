# SPDX-License-Identifier: MIT
"""Why a run is not executed: pure words about what the store found."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches

import msgspec

from byrote.core.duration import duration, spoken
from byrote.core.errors import BadOption

KIND = "unknown_task"
"""The kind of error of a run that ended because no live worker knew its task."""


LEAST, MOST = timedelta(minutes=1), timedelta(days=3650)


class UnservedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task with ready runs that no live worker of their queue knows."""

    queue: str
    task: str
    version: int
    since: datetime
    waited_s: float
    """How long workers were seen to serve the queue without one that knows the task."""
    known: Sequence[str] = ()
    """What live workers know, as `name@version`."""
    unserved_for: timedelta | None = None
    """How long the queue's runs wait for such a worker; None is for ever."""

    @property
    def key(self) -> str:
        """The task as `name@version`."""
        return f"{self.task}@{self.version}"

    @property
    def nearest(self) -> str:
        """What live workers know that may be meant; empty if nothing is like it."""
        return nearest(self.key, self.known)


class UnservedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended because no live worker knew its task."""

    id: str
    queue: str
    task: str
    version: int
    attempt: int


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands, as far as it decides whether a worker takes it."""

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
    """Whether one of those knows the task."""
    tasks: Sequence[str]
    unserved_for: timedelta | None

    @property
    def why(self) -> str:
        """Why it is not executed now, in a sentence; empty where nothing is in its way."""
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
            said = f"No live worker of the queue {self.queue} knows {key}"
            return f"{said}{like(key, self.tasks)}. {end_of(self.unserved_for)}"
        return "It waits for a free worker: live workers serve its queue and know its task."


def patience(text: str) -> timedelta | None:
    """How long a queue waits, as in `2h`; None for `never`. BadOption says what is allowed."""
    if text == "never":
        return None
    try:
        found = duration(text)
    except ValueError as error:
        raise BadOption(f"{error} Or give `never`.") from None
    if not LEAST <= found <= MOST:
        raise BadOption(f"Give a duration from 1 minute to 3650 days, or `never`, not {text!r}.")
    return found


def nearest(key: str, known: Sequence[str]) -> str:
    """The task among these that is most like `name@version`: another version first."""
    name = key.rpartition("@")[0]
    others = [one for one in known if one.rpartition("@")[0] == name]
    found = others[-1:] or get_close_matches(key, list(known), 1)
    return found[0] if found else ""


def like(key: str, known: Sequence[str]) -> str:
    """The nearest task as the end of a sentence; empty if there is none."""
    found = nearest(key, known)
    return f"; the nearest that is known is {found}" if found else ""


def end_of(unserved_for: timedelta | None) -> str:
    """What becomes of such a run."""
    if unserved_for is None:
        return "It waits for ever."
    return f"It ends FAILED ({KIND}) once that has been so for {spoken(unserved_for)}."
