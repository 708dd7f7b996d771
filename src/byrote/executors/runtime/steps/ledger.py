# SPDX-License-Identifier: MIT
"""One attempt's view of its run's ledger: what has been done already, and what comes next.

The authority is the database: rows that were written under the lease. This is a copy, read once,
before the first step of any attempt but the first; only the holder of the lease adds rows, so the
copy stays true. Every step, sleep and wait has a place: the branch of the task that calls, and the
position of the call in it (`branches.py`). A line found there must be of the same kind and name, or
the task has taken another way: NonDeterminism. So has a task that returns before it came to every
line that an earlier attempt wrote. Lines are numbered (`sequence`) in the order of the calls.

A line without a place was written before places were; it is found by its number or, if that is
another call's, by its kind and name.

The rules are written once, as generators that yield what to ask; `Sync` and `Async` ask it. The
ledger of a replay, `recital.py`, has the same methods.
"""

import logging
from collections.abc import Awaitable, Callable, Generator
from datetime import timedelta
from inspect import isawaitable, iscoroutine
from typing import Any, Protocol

from byrote.core.duration import DURATION_MAX, DurationLike, duration, micros
from byrote.core.errors import (
    BadOption,
    BadPayload,
    ByroteError,
    LeaseLost,
    NonDeterminism,
    NotRecorded,
)
from byrote.core.json.codec import pack, unpack
from byrote.core.ports.script import arun_script, run_script
from byrote.executors.runtime.asks import AskClient, AskResult
from byrote.executors.runtime.steps.branches import Branch, current_branch
from byrote.executors.runtime.steps.call import (
    END,
    EVENT,
    RAISED,
    SLEEP,
    STEP,
    LedgerEntry,
    StepCall,
    args_hash,
    check_name,
    current_step,
    within,
)
from byrote.executors.runtime.steps.error import recorded_error, stored_error

STEPS_MAX = 10_000
"""Steps, sleeps and waits of one run."""
CHARS_MAX = 64 * 1024 * 1024
"""Characters of JSON of all results of one run: every later attempt reads them."""

_log = logging.getLogger("byrote.steps")

type StepScript[T] = Generator[tuple[str, dict[str, Any]], AskResult, T]


class Suspended(BaseException):
    """Ends an attempt that waits. Not an Exception: a task's own `except` must not stop it."""

    def __init__(self, after: timedelta, wait: str, event: str | None) -> None:
        super().__init__(f"The attempt ends until its wait is over ({wait}).")
        self.after = after
        self.wait = wait
        self.event = event


class StepSource(Protocol):
    """What `Sync` and `Async` ask: the ledger of an attempt, or that of a replay."""

    ask_client: AskClient
    slot: int

    def call(self, kind: str, name: str, args: str | None = None) -> StepCall:
        """The call that is made now, with its place and the hash of its arguments."""

    def find(self, call: StepCall) -> StepScript[LedgerEntry | None]:
        """The line written at the call's place; None when the function is to be called."""

    def keep(self, call: StepCall, value: object) -> StepScript[None]:
        """Write a finished step."""

    def fail(self, call: StepCall, error: Exception) -> StepScript[None]:
        """Write that a step's function raised."""

    def wait(self, kind: str, name: str, length: timedelta | None) -> StepScript[str | None]:
        """What a wait ended with."""

    def end(self, error: BaseException) -> BaseException:
        """The attempt ends with this, whatever its task makes of it."""

    @property
    def strayed(self) -> BaseException | None:
        """That the task took another way than its record, if it did."""

    @property
    def met(self) -> list[int] | None:
        """The numbers of the lines that a replay has come to; None where they do not matter."""

    def close(self) -> StepScript[None]:
        """The task returns; NonDeterminism when it has not come to every line."""


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
        run_id, attempt = who
        self._who = {"run": run_id, "attempt": attempt}
        self._root = Branch() if root is None else root
        fresh = attempt == 1 if fresh is None else fresh
        self._known: dict[str, LedgerEntry] | None = {} if fresh else None
        self._taken: set[int] = set()
        """Numbers of lines, recorded or given out by this attempt."""
        self.seen: set[int] = set()
        """Numbers of recorded lines that this attempt has come to."""
        self._count = 0
        self._size = 0
        self._over: BaseException | None = None

    def call(self, kind: str, name: str, args: str | None = None) -> StepCall:
        """The call that is made now, with its place and the hash of its arguments."""
        if self._over is not None:
            # The task caught what ended it: it is raised again, and nothing more changes.
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
        """The line written at the call's place, if there is one; NonDeterminism if it is another.

        A step that was recorded with other arguments keeps its result, and that is logged; in a
        branch it may be the step of another branch, so there it is NonDeterminism.
        """
        line = yield from self.match(call)
        if line is not None and line.has_other_args(call):
            self._warn(call)
        return line

    def match(self, call: StepCall) -> StepScript[LedgerEntry | None]:
        """As `find`, whatever the arguments are."""
        known = yield from self.lines()
        line = known.get(call.place)
        if line is None or not line.fits(call):
            line = next((old for old in self._unplaced() if old.fits(call)), line)
        if line is None:
            call.sequence = self._free(call.sequence)
            return None
        if not line.fits(call):
            raise self.end(NonDeterminism(call.where, line.spoken(), call.spoken()))
        call.sequence = line.sequence
        self.seen.add(line.sequence)
        return line

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
            line for line in known.values() if line.place is None and line.sequence not in self.seen
        ]

    def _free(self, wanted: int) -> int:
        number = wanted if wanted not in self._taken else max(self._taken) + 1
        self._taken.add(number)
        return number

    def lines(self) -> StepScript[dict[str, LedgerEntry]]:
        """Every line that earlier attempts wrote, by place; read once."""
        if self._known is None:
            self._learn(self._payload((yield "load", self._who)))
        return self._known or {}

    def _learn(self, rows: list[Any]) -> None:
        lines = [LedgerEntry(*row) for row in rows]
        self._known = {line.place or str(line.sequence): line for line in lines}
        self._taken |= {line.sequence for line in lines}
        self._size = sum(len(line.text or "") for line in lines)

    def end(self, error: BaseException) -> BaseException:
        """The attempt ends with this, whatever its task makes of it."""
        self._over = error
        return error

    @property
    def strayed(self) -> BaseException | None:
        """That the task took another way, if it did; what it made of that error hides nothing."""
        return self._over if isinstance(self._over, NonDeterminism | NotRecorded) else None

    @property
    def met(self) -> list[int] | None:
        """It does not matter here: the next attempt goes on from what is stored."""
        return None

    def close(self) -> StepScript[None]:
        """The task returns; NonDeterminism when earlier attempts did more than it came to."""
        if self.strayed is not None:
            raise self.strayed
        if self._known is None:
            answer = yield "load", self._who
            if not answer.ok and answer.payload is not None:
                return  # The ledger is not known; a task that never used a step must not fail.
            self._learn(self._payload(answer))
        known = (self._known or {}).values()
        left = [line for line in known if line.sequence not in self.seen and line.kind != RAISED]
        if left:
            line = min(left)
            place = line.place or str(line.sequence)
            where = StepCall(place, line.kind, line.name).where
            raise self.end(NonDeterminism(where, line.spoken(), END))

    def keep(self, call: StepCall, value: object) -> StepScript[None]:
        """Write a finished step; BadPayload when its result cannot be stored."""
        if iscoroutine(value):
            value.close()
        try:
            packed = pack(value)
        except BadPayload as error:
            reason = f"The result of step {call.name!r} cannot be stored: {error.reason}"
            raise BadPayload(error.path, reason) from None
        self._size += len(packed.text)
        if self._size > CHARS_MAX:
            reason = f"The results of all steps of a run have at most {CHARS_MAX:,} characters."
            raise BadPayload("$", reason)
        result = {"result": packed.text, "hash": packed.digest.hex()}
        self._payload((yield "note", self._who | call.line(STEP) | result))

    def fail(self, call: StepCall, error: Exception) -> StepScript[None]:
        """Write that a step's function raised: for replays, a later attempt calls it again."""
        packed = stored_error(error)
        if packed is None:
            return
        result = {"result": packed.text, "hash": packed.digest.hex()}
        answer = yield "note", self._who | call.line(RAISED) | result
        if not answer.ok and answer.payload is None:
            self._payload(answer)  # The lease is lost; without this record an attempt goes on.

    def wait(self, kind: str, name: str, length: timedelta | None) -> StepScript[str | None]:
        """What a wait ended with, None for its time being up; Suspended while it goes on."""
        call = self.call(kind, name)
        line = yield from self.find(call)
        if line is not None and not line.open:
            return line.text
        delay = None if length is None else micros(length)
        asked = call.line(kind) | {"delay_us": delay}
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


class SyncSteps:
    """Asks and waits in the task's thread."""

    def __init__(self, ledger: StepSource) -> None:
        self._ledger = ledger

    def step(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The function's result, of an earlier attempt if one finished this step."""
        call = self._ledger.call(STEP, name, args_hash(args, kwargs))
        line = self._run(self._ledger.find(call))
        if line is not None:
            return _answer(self._ledger, line)
        try:
            with within(call.place):
                value = function(*args, **kwargs)
        except Exception as error:
            self._run(self._ledger.fail(call, error))
            raise
        self._run(self._ledger.keep(call, value))
        return value

    def wait(self, kind: str, name: str, length: DurationLike | None) -> str | None:
        """What a wait ended with; Suspended while it goes on."""
        return self._run(self._ledger.wait(kind, name, _length(length)))

    def close(self) -> None:
        """The task returns; NonDeterminism when it has not come to every line."""
        self._run(self._ledger.close())

    def _run[T](self, script: StepScript[T]) -> T:
        ask, slot = self._ledger.ask_client.ask, self._ledger.slot
        return run_script(script, lambda request: ask(slot, *request))


class AsyncSteps:
    """Asks and lets other tasks of the loop work meanwhile."""

    def __init__(self, ledger: StepSource) -> None:
        self._ledger = ledger

    async def step(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The function's result, awaited, or that of an earlier attempt."""
        call = self._ledger.call(STEP, name, args_hash(args, kwargs))
        line = await self._run(self._ledger.find(call))
        if line is not None:
            return _answer(self._ledger, line)
        try:
            with within(call.place):
                value = function(*args, **kwargs)
                if isawaitable(value):
                    value = await value
        except Exception as error:
            await self._run(self._ledger.fail(call, error))
            raise
        await self._run(self._ledger.keep(call, value))
        return value

    def wait(self, kind: str, name: str, length: DurationLike | None) -> Awaitable[str | None]:
        """What a wait ended with; Suspended while it goes on."""
        return self._run(self._ledger.wait(kind, name, _length(length)))

    async def close(self) -> None:
        """The task returns; NonDeterminism when it has not come to every line."""
        await self._run(self._ledger.close())

    def _run[T](self, script: StepScript[T]) -> Awaitable[T]:
        ask, slot = self._ledger.ask_client.aask, self._ledger.slot
        return arun_script(script, lambda request: ask(slot, *request))


def _answer(steps: StepSource, line: LedgerEntry) -> Any:
    """A recorded result, or the error that the step's function raised."""
    if line.kind != RAISED:
        return unpack(line.text or "null")
    error = recorded_error(line.text or "null")
    raise error if not isinstance(error, NotRecorded) else steps.end(error)


def _length(value: DurationLike | None) -> timedelta | None:
    return None if value is None else duration(value)
