# SPDX-License-Identifier: MIT
"""Withholds calls of a replayed attempt that would have effects: enqueue, signal, cancel, retry.

A replay executes the code of a task again, and the workers of production would execute the runs
that this code enqueues. So its executor opens a `Withholding` around each attempt. The calls whose
reply can be made up check `withholding()` first: they send nothing, return the reply of a success,
and are counted for the verdict. `Query` refuses every other statement that writes.

The ids of runs that were not enqueued are derived from the run and the number of the call. The
original has other ids, so `aligned` ignores them when results are compared.
"""

import re
from collections.abc import Callable, Collection
from contextvars import ContextVar
from hashlib import sha256
from typing import Any

import msgspec

from byrote.core.errors import WithheldInReplay
from byrote.core.json.seed import uuid_bits
from byrote.core.text.ids import dashed

type ReportWithheld = Callable[[str, str, int], None]
"""Receives the call, its object (a task, a signal, a run) and how often it was made."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class WithheldCall(msgspec.Struct, frozen=True):
    """A call that a replay made and that was not sent."""

    call: str
    """`enqueue`, `signal`, `cancel` or `retry`."""
    what: str
    """The task, the signal or the run."""
    count: int

    def __str__(self) -> str:
        times = "" if self.count == 1 else f", {self.count} times"
        return f"{self.call} {self.what}{times}"


class Withholding:
    """The calls of one replayed attempt, or of a whole process that replays."""

    def __init__(self, run_id: str = "", report: ReportWithheld | None = None) -> None:
        self._run_id = run_id
        self._report = report
        self.ids: set[str] = set()
        """Runs that were not enqueued."""

    def enqueue(self, task: str, count: int = 1) -> list[str]:
        """Count runs of a task that are not enqueued; returns ids for them."""
        known = len(self.ids)
        made = [withheld_id(self._run_id, known + number) for number in range(count)]
        self.ids.update(made)
        self.note("enqueue", task, count)
        return made

    def note(self, call: str, what: str, count: int = 1) -> None:
        """Count a call that is not made."""
        if self._report is not None:
            self._report(call, what, count)

    def check(self, run_id: str) -> None:
        """Raise WithheldInReplay for a run that was not enqueued."""
        if run_id in self.ids:
            raise WithheldInReplay(
                f"Run {run_id} was not enqueued, since this is a replay, so it has no result. Wait "
                "for other runs inside a step, whose result is recorded."
            )


_attempt: ContextVar[Withholding | None] = ContextVar("byrote_withholding", default=None)
open_withholding = _attempt.set
"""Withholds the calls of this thread or coroutine from now on."""
_process: list[Withholding] = []


def withhold_everywhere() -> None:
    """Withhold calls of all threads: the process executes nothing but replays."""
    _process.append(Withholding())


def withholding() -> Withholding | None:
    """Returns the object that counts calls instead of sending them; None outside of replays."""
    return _attempt.get() or (_process[0] if _process else None)


def withheld_id(run_id: str, number: int) -> str:
    """Returns the made-up id of the run with this number that a replay does not enqueue."""
    digest = sha256(b"withheld" + run_id.encode()).digest()
    return dashed(f"{uuid_bits(digest, number):032x}")


def aligned(old: Any, new: Any, ids: Collection[str]) -> Any:
    """`new` with every id of a run that was not enqueued replaced by the one `old` has there."""
    return _Alignment(ids).of(old, new) if ids else new


class _Alignment:
    def __init__(self, ids: Collection[str]) -> None:
        self._ids = frozenset(ids)
        self._pairs: dict[str, str] = {}

    def of(self, old: Any, new: Any) -> Any:
        match old, new:
            case dict(), dict():
                return {k: self.of(old[k], v) if k in old else v for k, v in new.items()}
            case list(), list():
                both = zip(old, new, strict=False)
                return [self.of(*pair) for pair in both] + new[len(old) :]
            case str(), str():
                return old if self._match(old, new) else new
            case _:
                return new

    def _match(self, old: str, new: str) -> bool:
        """Whether two texts differ only in these ids, each of which maps to one other."""
        theirs, ours = _UUID.findall(old), _UUID.findall(new)
        if len(theirs) != len(ours) or _UUID.split(old) != _UUID.split(new):
            return False
        pairs = dict(self._pairs)
        for one, other in zip(ours, theirs, strict=True):
            if pairs.setdefault(one, other if one in self._ids else one) != other:
                return False
        if len(set(pairs.values())) != len(pairs):
            return False
        self._pairs = pairs
        return True
