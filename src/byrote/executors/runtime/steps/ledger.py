# SPDX-License-Identifier: MIT
"""One attempt's view of its run's ledger: the recorded calls, and the next one.

The authority is the database: rows that were written under the lease. This is a copy, read once,
before the first step of any attempt but the first; only the holder of the lease adds rows, so the
copy stays true. Every step, sleep and wait has a place: the branch of the task that calls, and the
position of the call in it (`branches.py`). An entry found there must be of the same kind and name;
otherwise the task has taken another path, and NonDeterminism is raised. The same holds for a task
that returns before it has reached every entry that an earlier attempt wrote. Entries are numbered
(`sequence`) in the order of the calls.

An entry without a place was written before places were; it is found by its number or, if that is
another call's, by its kind and name.

A step whose function raised is written twice. At once as `raised`, which only a replay of this
attempt reads. And as `failed` when the task has caught the error and goes on: before its next step,
sleep, wait or effect, and before it returns. A later attempt raises a `failed` step's error again
and so takes the same path; a step whose error ended the attempt is called again.

Between two tries of a step with its own retry, a long wait is a sleep at the step's place with
the number of the try (`3~1`).

The rules are written once, as generators that yield asks; `callers.py` sends them. The ledger of a
replay, `recorded_ledger.py`, has the same methods.
"""

import logging
from collections.abc import Generator
from datetime import timedelta
from inspect import iscoroutine
from typing import Any, NamedTuple, Protocol

from byrote.core.duration import DURATION_MAX, micros
from byrote.core.errors import (
    BadOption,
    BadPayload,
    ByroteError,
    LeaseLost,
    NonDeterminism,
    NotRecorded,
)
from byrote.core.json.codec import Packed, pack
from byrote.executors.runtime.asks import AskClient, AskResult
from byrote.executors.runtime.steps.branches import Branch, current_branch, went_on
from byrote.executors.runtime.steps.call import (
    END,
    EVENT,
    FAILED,
    RAISED,
    SLEEP,
    STEP,
    LedgerEntry,
    StepCall,
    check_name,
    current_step,
)
from byrote.executors.runtime.steps.error import stored_error

STEPS_MAX = 10_000
"""Steps, sleeps and waits of one run."""
CHARS_MAX = 64 * 1024 * 1024
"""Characters of JSON of all results of one run: every later attempt reads them."""

PAUSE = "~"
"""Separates a step's place from the number of a try, in the place of the wait that follows it."""

_log = logging.getLogger("byrote.steps")

type StepScript[T] = Generator[tuple[str, dict[str, Any]], AskResult, T]


class Suspended(BaseException):
    """Ends an attempt that waits. Not an Exception: a task's own `except` must not stop it."""

    def __init__(self, after: timedelta, wait: str, event: str | None) -> None:
        super().__init__(f"The attempt ends until its wait is over ({wait}).")
        self.after = after
        self.wait = wait
        self.event = event


class CaughtFailure(NamedTuple):
    """A step's error that is written as soon as the task is known to have caught it."""

    branch: Branch
    at: int
    """When it was raised, in starts of branches and errors of this attempt."""
    call: StepCall
    error: Packed


class StepSource(Protocol):
    """The interface of `SyncSteps` and `AsyncSteps` to the ledger of an attempt or of a replay."""

    ask_client: AskClient
    slot: int
    run_id: str

    def call(self, kind: str, name: str, args: str | None = None) -> StepCall:
        """Return the current call, with its place and the hash of its arguments."""

    def find(self, call: StepCall) -> StepScript[LedgerEntry | None]:
        """Return the entry at the call's place; None if the function is to be called."""

    def keep(self, call: StepCall, value: object) -> StepScript[None]:
        """Write a finished step."""

    def fail(self, call: StepCall, error: Exception) -> StepScript[None]:
        """Record that a step's function raised."""

    def record_caught(self) -> StepScript[None]:
        """Write the errors that the task has caught, before it continues."""

    def tried(self, call: StepCall) -> StepScript[int]:
        """How many tries of a step earlier attempts made; raises Suspended during the last wait."""

    def pause(self, call: StepCall, tried: int, length: timedelta) -> StepScript[None]:
        """Wait before the next try of a step, without occupying a slot."""

    def wait(self, kind: str, name: str, length: timedelta | None) -> StepScript[str | None]:
        """Return the result of a wait."""

    def end(self, error: BaseException) -> BaseException:
        """End the attempt with this error, whatever its task does with it."""

    @property
    def strayed(self) -> BaseException | None:
        """The error if the task took another path than its record, else None."""

    @property
    def met(self) -> list[int] | None:
        """The numbers of the entries that a replay has reached; None if they do not matter."""

    def close(self) -> StepScript[None]:
        """Called when the task returns; raises NonDeterminism if an entry was not reached."""


class Ledger:
    """The steps of one attempt."""

    def __init__(
        self,
        ask_client: AskClient,
        slot: int,
        who: tuple[str, int],
        root: Branch | None = None,
        *,
        fresh: bool | None = None,
    ) -> None:
        self.ask_client = ask_client
        self.slot = slot
        self.run_id, attempt = who
        self._who = {"run": self.run_id, "attempt": attempt}
        self._root = Branch() if root is None else root
        fresh = attempt == 1 if fresh is None else fresh
        self._known: dict[str, LedgerEntry] | None = {} if fresh else None
        self._taken: set[int] = set()
        """Numbers of entries, recorded or assigned by this attempt."""
        self.seen: set[int] = set()
        """Numbers of recorded entries that this attempt has reached."""
        self._count = 0
        self._size = 0
        self._over: BaseException | None = None
        self._failures: list[CaughtFailure] = []
        """Errors of steps that are not written yet; one that ends the attempt never is."""
        self._pauses: dict[str, dict[int, LedgerEntry]] = {}
        """Waits between the tries of a step, by its place and the number of the try before."""

    def call(self, kind: str, name: str, args: str | None = None) -> StepCall:
        """Return the current call, with its place and the hash of its arguments."""
        if self._over is not None:
            # The task caught the error that ended it: raise it again, and change nothing more.
            raise self._over
        if current_step():
            spoken = StepCall("", kind, name).spoken()
            raise BadOption(f"{spoken} is inside another step; only tasks have steps.")
        check_name(name)
        self._count += 1
        if self._count > STEPS_MAX:
            raise BadOption(f"A run has at most {STEPS_MAX:,} steps; split it into several runs.")
        place = current_branch(self._root).next_place()
        return StepCall(place, kind, name, args=args, sequence=self._count)

    def find(self, call: StepCall) -> StepScript[LedgerEntry | None]:
        """The entry written at the call's place, if there is one; NonDeterminism if it is another.

        A step that was recorded with other arguments keeps its result, and that is logged; in a
        branch it may be the step of another branch, so there it is NonDeterminism.
        """
        if self._failures:
            yield from self.record_caught()
        entry = yield from self.match(call)
        if entry is not None and entry.has_other_args(call):
            self._warn(call)
        return entry

    def match(self, call: StepCall) -> StepScript[LedgerEntry | None]:
        """The same as `find`, whatever the arguments are."""
        known = yield from self.entries()
        entry = known.get(call.place)
        if entry is None or not entry.fits(call):
            entry = next((old for old in self._unplaced() if old.fits(call)), entry)
        self.seen |= {pause.sequence for pause in self._pauses.get(call.place, {}).values()}
        if entry is None:
            call.sequence = self._free(call.sequence)
            return None
        if not entry.fits(call):
            raise self.end(NonDeterminism(call.where, entry.spoken(), call.spoken()))
        call.sequence = entry.sequence
        self.seen.add(entry.sequence)
        return entry

    def _warn(self, call: StepCall) -> None:
        if call.branched:
            recorded = f"{call.spoken()} with other arguments"
            raise self.end(NonDeterminism(call.where, recorded, f"{call.spoken()} with these"))
        _log.warning(
            "Step %s (%r) is answered with its recorded result, though an earlier attempt called "
            "it with other arguments.",
            call.place,
            call.name,
        )

    def _unplaced(self) -> list[LedgerEntry]:
        known = self._known or {}
        return [
            entry
            for entry in known.values()
            if entry.place is None and entry.sequence not in self.seen
        ]

    def _free(self, wanted: int) -> int:
        number = wanted if wanted not in self._taken else max(self._taken) + 1
        self._taken.add(number)
        return number

    def entries(self) -> StepScript[dict[str, LedgerEntry]]:
        """Every entry that earlier attempts wrote, by place; read once."""
        if self._known is None:
            self._learn(self._payload((yield "load", self._who)))
        return self._known or {}

    def _learn(self, rows: list[Any]) -> None:
        entries = [LedgerEntry(*row) for row in rows]
        self._known = {entry.place or str(entry.sequence): entry for entry in entries}
        self._taken |= {entry.sequence for entry in entries}
        for entry in entries:
            place, between, tried = (entry.place or "").partition(PAUSE)
            if between:
                self._pauses.setdefault(place, {})[int(tried)] = entry
        self._size = sum(len(entry.text or "") for entry in entries)

    def end(self, error: BaseException) -> BaseException:
        """End the attempt with this error, whatever its task does with it."""
        self._over = error
        return error

    @property
    def strayed(self) -> BaseException | None:
        """The error if the task took another path, even if the task caught that error."""
        return self._over if isinstance(self._over, NonDeterminism | NotRecorded) else None

    @property
    def met(self) -> list[int] | None:
        """Always None: the next attempt continues from what is stored."""
        return None

    def close(self) -> StepScript[None]:
        """Called when the task returns; NonDeterminism if an earlier entry was not reached."""
        if self.strayed is not None:
            raise self.strayed
        for failure in tuple(self._failures):
            # Nothing depends on it any more unless this attempt's outcome is lost.
            yield from self._write_error(failure.call, FAILED, failure.error)
        if self._known is None:
            answer = yield "load", self._who
            if not answer.ok and answer.payload is not None:
                return  # The ledger is not known; a task that never used a step must not fail.
            self._learn(self._payload(answer))
        known = (self._known or {}).values()
        left = [
            entry for entry in known if entry.sequence not in self.seen and entry.kind != RAISED
        ]
        if left:
            entry = min(left)
            place = entry.place or str(entry.sequence)
            where = StepCall(place, entry.kind, entry.name).where
            raise self.end(NonDeterminism(where, entry.spoken(), END))

    def keep(self, call: StepCall, value: object) -> StepScript[None]:
        """Write a finished step; BadPayload when its result cannot be stored."""
        if iscoroutine(value):
            value.close()
        try:
            packed = pack(value)
        except BadPayload as error:
            reason = f"The result of step {call.name!r} cannot be stored: {error.reason}"
            raise BadPayload(error.path, reason) from None
        self._grow(packed)
        result = {"result": packed.text, "hash": packed.digest.hex()}
        self._payload((yield "note", self._who | call.fields(STEP) | result))

    def _grow(self, packed: Packed) -> None:
        self._size += len(packed.text)
        if self._size > CHARS_MAX:
            reason = f"The results of all steps of a run have at most {CHARS_MAX:,} characters."
            raise BadPayload("$", reason)

    def fail(self, call: StepCall, error: Exception) -> StepScript[None]:
        """Record that a step's function raised, for replays and for `settle`."""
        packed = stored_error(error)
        if packed is None:
            return
        branch = current_branch(self._root)
        self._failures.append(CaughtFailure(branch, branch.root.tick(), call, packed))
        yield from self._write_error(call, RAISED, packed)

    def _write_error(self, call: StepCall, kind: str, error: Packed) -> StepScript[AskResult]:
        result = {"result": error.text, "hash": error.digest.hex()}
        answer = yield "note", self._who | call.fields(kind) | result
        if not answer.ok and answer.payload is None:
            self._payload(answer)  # The lease is lost; the attempt continues without this record.
        return answer

    def record_caught(self) -> StepScript[None]:
        """Write the errors that the task has caught, as this call proves: the task continues."""
        branch = current_branch(self._root)
        caught = [
            failure for failure in self._failures if went_on(branch, failure.branch, failure.at)
        ]
        for failure in caught:
            self._grow(failure.error)
            self._payload((yield from self._write_error(failure.call, FAILED, failure.error)))
            # Only now: a call of another branch must not overtake the write.
            if failure in self._failures:
                self._failures.remove(failure)

    def tried(self, call: StepCall) -> StepScript[int]:
        """How many tries of a step earlier attempts made; raises Suspended during the last wait."""
        pauses = self._pauses.get(call.place)
        if not pauses:
            return 0
        tried = max(pauses)
        if pauses[tried].open:
            yield from self.pause(call, tried, timedelta(0))
        return tried

    def pause(self, call: StepCall, tried: int, length: timedelta) -> StepScript[None]:
        """Wait before the next try of a step, without a slot: raises Suspended until then."""
        entry = self._pauses.get(call.place, {}).get(tried)
        sequence = self._free(call.sequence) if entry is None else entry.sequence
        place = f"{call.place}{PAUSE}{tried}"
        yield from self._wait_at(StepCall(place, SLEEP, call.name, sequence=sequence), length)

    def wait(self, kind: str, name: str, length: timedelta | None) -> StepScript[str | None]:
        """Return the result of a wait, or None after its timeout; raises Suspended until then."""
        call = self.call(kind, name)
        entry = yield from self.find(call)
        if entry is not None and not entry.open:
            return entry.text
        return (yield from self._wait_at(call, length))

    def _wait_at(self, call: StepCall, length: timedelta | None) -> StepScript[str | None]:
        kind, name = call.kind, call.name
        delay = None if length is None else micros(length)
        asked = call.fields(kind) | {"delay_us": delay}
        is_open, text, left_us = self._payload((yield "note", self._who | asked))
        if not is_open or (left_us is not None and left_us <= 0 and kind == SLEEP):
            return text  # type: ignore[no-any-return]
        after = DURATION_MAX if left_us is None else timedelta(microseconds=max(left_us, 0))
        raise self.end(Suspended(after, kind, name if kind == EVENT else None))

    def _payload(self, answer: AskResult) -> Any:
        if answer.ok:
            return answer.payload
        if answer.payload is None:
            raise self.end(LeaseLost("The attempt lost its lease; another one goes on."))
        raise ByroteError(f"The ledger could not be asked: {answer.payload}")
