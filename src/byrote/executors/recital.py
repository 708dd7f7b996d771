# SPDX-License-Identifier: MIT
"""The ledger of a replay: what the original did is recited, not done again.

The lines are the original's, read once. Steps must come as they did there, and each gets the result
it had; one that has no result there ends the replay, since its function must not be called. Sleeps
and waits end at once, with what ended them then.

Where steps are live their functions are called, in whatever order, and what they give is written to
the shadow run's own ledger. Waits are still answered from the record, by name, and sleeps are over.
"""

from collections import Counter
from datetime import timedelta

from byrote.core.errors import NotRecorded
from byrote.executors.desk import Desk
from byrote.executors.ledger import EVENT, SLEEP, STEP, Asking, Ledger, Line, spoken


class Recital:
    """The steps of one replay, in order."""

    def __init__(self, desk: Desk, slot: int, run_id: str, attempt: int) -> None:
        self.desk = desk
        self.slot = slot
        self._live = desk.replay == "live"
        self._ledger = Ledger(desk, slot, run_id, attempt, fresh=False)
        self._waits: Counter[str] = Counter()

    def end(self, error: BaseException) -> BaseException:
        """The replay ends with this, whatever its task makes of it."""
        return self._ledger.end(error)

    @property
    def strayed(self) -> BaseException | None:
        """That the task took another way than the original, if it did."""
        return self._ledger.strayed

    @property
    def met(self) -> int | None:
        """How many of the original's lines it has come to; None where steps are live."""
        return None if self._live else self._ledger.count

    def number(self, kind: str, name: str) -> int:
        """The place of the call that is made now."""
        return self._ledger.number(kind, name)

    def find(self, number: int, kind: str, name: str) -> Asking[Line | None]:
        """The line the original wrote under this number; None for a step that is live."""
        if self._live and kind == STEP:
            return None
        line = yield from self._ledger.find(number, kind, name)
        if line is None or line.open:
            raise self.end(_unrecorded(number, kind, name))
        return line

    def keep(self, number: int, name: str, value: object) -> Asking[None]:
        """Write a live step to the shadow run's own ledger."""
        yield from self._ledger.keep(number, name, value)

    def wait(self, kind: str, name: str, length: timedelta | None) -> Asking[str | None]:
        """What the original's wait ended with."""
        del length  # Nobody waits here.
        number = self.number(kind, name)
        if not self._live:
            line = yield from self.find(number, kind, name)
            return None if line is None else line.text
        if kind == SLEEP:
            return None
        lines = yield from self._ledger.lines()
        heard = [lines[n] for n in sorted(lines) if lines[n][:3] == (EVENT, name, False)]
        self._waits[name] += 1
        if self._waits[name] > len(heard):
            raise self.end(_unrecorded(number, kind, name))
        return heard[self._waits[name] - 1].text

    def close(self) -> Asking[None]:
        """The task returns; NonDeterminism when the original did more, unless steps are live."""
        if not self._live:
            yield from self._ledger.close()
        elif self.strayed is not None:
            raise self.strayed


def _unrecorded(number: int, kind: str, name: str) -> NotRecorded:
    live = " (--live-steps executes steps again)" if kind == STEP else ""
    return NotRecorded(
        f"Step {number} is {spoken(kind, name)} now, and the original has no finished one there to "
        f"answer it with{live}."
    )
