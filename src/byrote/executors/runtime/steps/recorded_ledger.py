# SPDX-License-Identifier: MIT
"""The ledger of a replay: answers calls from the original's record, without doing them again.

The entries are the original's, read once. Steps must come in the same order, and each gets its
recorded result; one without a recorded result ends the replay, since its function must not be
called. Sleeps and waits end at once, with their recorded results.

Where steps are live their functions are called, in whatever order, and their results are written to
the shadow run's own ledger. Waits are still answered from the record, by name, and sleeps are over.
"""

from collections import Counter
from datetime import timedelta

from byrote.core.errors import NotRecorded
from byrote.executors.runtime.asks import AskClient
from byrote.executors.runtime.steps.branches import Branch
from byrote.executors.runtime.steps.call import EVENT, SLEEP, STEP, LedgerEntry, StepCall
from byrote.executors.runtime.steps.ledger import Ledger, StepScript

OTHER_ARGS = "replay.arguments"
"""Reports that a recorded step would be called with other arguments now."""


class RecordedLedger:
    """The steps of one replay, in order."""

    def __init__(
        self, ask_client: AskClient, slot: int, who: tuple[str, int], root: Branch | None = None
    ) -> None:
        self.ask_client = ask_client
        self.slot = slot
        self.run_id = who[0]
        self._who = who
        self._live = ask_client.replay == "live"
        self._ledger = Ledger(ask_client, slot, who, root, fresh=False)
        self._waits: Counter[str] = Counter()

    def end(self, error: BaseException) -> BaseException:
        """End the replay with this error, whatever its task does with it."""
        return self._ledger.end(error)

    @property
    def strayed(self) -> BaseException | None:
        """The error if the task took another path than the original, else None."""
        return self._ledger.strayed

    @property
    def met(self) -> list[int] | None:
        """The numbers of the original's entries it has reached; None if steps are live."""
        return None if self._live else sorted(self._ledger.seen)

    def call(self, kind: str, name: str, args: str | None = None) -> StepCall:
        """Return the current call."""
        return self._ledger.call(kind, name, args)

    def find(self, call: StepCall) -> StepScript[LedgerEntry | None]:
        """The entry the original wrote for this call; None for a step that is live."""
        if self._live and call.kind == STEP:
            return None
        entry = yield from self._ledger.match(call)
        if entry is None or entry.open:
            raise self.end(_unrecorded(call))
        if entry.has_other_args(call):
            run_id, attempt = self._who
            step = {
                "run": run_id,
                "attempt": attempt,
                "sequence": entry.sequence,
                "name": call.name,
            }
            yield OTHER_ARGS, step
        return entry

    def keep(self, call: StepCall, value: object) -> StepScript[None]:
        """Write a live step to the shadow run's own ledger."""
        yield from self._ledger.keep(call, value)

    def fail(self, call: StepCall, error: Exception) -> StepScript[None]:
        """Do nothing: the shadow run is not replayed itself, so the error is not needed."""
        del call, error
        yield from ()

    def record_caught(self) -> StepScript[None]:
        """Do nothing: the errors of live steps are not written."""
        yield from ()

    def tried(self, call: StepCall) -> StepScript[int]:
        """Always the first try of a live step."""
        del call
        yield from ()
        return 0

    def pause(self, call: StepCall, tried: int, length: timedelta) -> StepScript[None]:
        """Do nothing: a replay does not wait."""
        del call, tried, length
        yield from ()

    def wait(self, kind: str, name: str, length: timedelta | None) -> StepScript[str | None]:
        """The result of the original's wait."""
        del length  # A replay does not wait.
        call = self.call(kind, name)
        if not self._live:
            entry = yield from self.find(call)
            return None if entry is None else entry.text
        if kind == SLEEP:
            return None
        entries = yield from self._ledger.entries()
        events = [entry for entry in sorted(entries.values()) if entry[1:4] == (EVENT, name, False)]
        self._waits[name] += 1
        if self._waits[name] > len(events):
            raise self.end(_unrecorded(call))
        return events[self._waits[name] - 1].text

    def close(self) -> StepScript[None]:
        """Called when the task returns; NonDeterminism if an entry was not reached."""
        if not self._live:
            yield from self._ledger.close()
        elif self.strayed is not None:
            raise self.strayed


def _unrecorded(call: StepCall) -> NotRecorded:
    live = " (--live-steps executes steps again)" if call.kind == STEP else ""
    return NotRecorded(
        f"{call.where} is {call.spoken()} now, and the original has no finished one there to "
        f"answer it with{live}."
    )
