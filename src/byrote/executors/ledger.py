# SPDX-License-Identifier: MIT
"""One attempt's view of its run's ledger: what has been done already, and what comes next.

What is true: the database's rows, written under the lease. This is a copy, read once, before the
first step of any attempt but the first; only the holder of the lease adds to it, so it stays true.
Every step, sleep and wait takes the next number in the order of the calls. A line found under that
number must be of the same kind and name, or the task has taken another way: NonDeterminism. So has
one that returns before it came to every line an earlier attempt wrote.

The rules are written once, as generators that yield what to ask; `Sync` and `Async` ask it. The
ledger of a replay, `recital.py`, has the same face.
"""

import contextlib
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextvars import ContextVar
from datetime import timedelta
from inspect import isawaitable, iscoroutine
from typing import Any, NamedTuple, Protocol

from byrote.core.codec import pack, unpack
from byrote.core.duration import DURATION_MAX, duration, micros
from byrote.core.errors import (
    BadOption,
    BadPayload,
    ByroteError,
    LeaseGone,
    NonDeterminism,
    NotRecorded,
)
from byrote.executors.desk import Answer, Desk
from byrote.executors.output import current_tray, open_tray, shut_tray

STEPS_MAX = 10_000
"""Steps, sleeps and waits of one run."""
CHARS_MAX = 64 * 1024 * 1024
"""Characters of JSON of all results of one run: every later attempt reads them."""
NAME_MAX = 200

STEP, SLEEP, EVENT = "step", "sleep", "event"
END = "the end of the task"

_inside: ContextVar[int] = ContextVar("byrote_inside_a_step", default=0)
current_step = _inside.get
"""The number of the step whose function is calling; 0 outside of steps."""

type Length = timedelta | str | float
type Asking[T] = Generator[tuple[str, dict[str, Any]], Answer, T]


class Suspended(BaseException):
    """Ends an attempt that waits. No Exception: a task's own `except` must not stop it."""

    def __init__(self, after: timedelta, wait: str, event: str | None) -> None:
        super().__init__(f"The attempt gives up its place and waits ({wait}).")
        self.after = after
        self.wait = wait
        self.event = event


class Line(NamedTuple):
    """One line of the ledger."""

    kind: str
    name: str
    open: bool
    text: str | None


class Steps(Protocol):
    """What `Sync` and `Async` ask: the ledger of an attempt, or that of a replay."""

    desk: Desk
    slot: int

    def number(self, kind: str, name: str) -> int:
        """The place of the call that is made now."""

    def find(self, number: int, kind: str, name: str) -> Asking[Line | None]:
        """The line written under this number; None when the function is to be called."""

    def keep(self, number: int, name: str, value: object) -> Asking[None]:
        """Write a finished step."""

    def wait(self, kind: str, name: str, length: timedelta | None) -> Asking[str | None]:
        """What a wait ended with."""

    def end(self, error: BaseException) -> BaseException:
        """The attempt ends with this, whatever its task makes of it."""

    @property
    def strayed(self) -> BaseException | None:
        """That the task took another way than its record, if it did."""

    @property
    def met(self) -> int | None:
        """How many lines a replay has come to; None where that is nobody's concern."""

    def close(self) -> Asking[None]:
        """The task returns; NonDeterminism when it has not come to every line."""


class Ledger:
    """The steps of one attempt, in order."""

    def __init__(
        self, desk: Desk, slot: int, run_id: str, attempt: int, *, fresh: bool | None = None
    ) -> None:
        self.desk = desk
        self.slot = slot
        self._who = {"run": run_id, "attempt": attempt}
        fresh = attempt == 1 if fresh is None else fresh
        self._known: dict[int, Line] | None = {} if fresh else None
        self.count = 0
        self._size = 0
        self._over: BaseException | None = None

    def number(self, kind: str, name: str) -> int:
        """The place of the call that is made now."""
        if self._over is not None:
            # The task caught what ended it: it is told again, and changes nothing more.
            raise self._over
        if _inside.get():
            raise BadOption(f"{spoken(kind, name)} is inside another step; only tasks have steps.")
        check_name(name)
        self.count += 1
        if self.count > STEPS_MAX:
            raise BadOption(f"A run has at most {STEPS_MAX:,} steps; split it into several runs.")
        return self.count

    def find(self, number: int, kind: str, name: str) -> Asking[Line | None]:
        """The line written under this number, if there is one; NonDeterminism if it is another."""
        line = (yield from self.lines()).get(number)
        if line is not None and (line.kind, line.name) != (kind, name):
            raise self.end(NonDeterminism(number, spoken(line.kind, line.name), spoken(kind, name)))
        return line

    def lines(self) -> Asking[dict[int, Line]]:
        """Every line that earlier attempts wrote, by number; read once."""
        if self._known is None:
            self._learn(self._heard((yield "load", self._who)))
        return self._known or {}

    def _learn(self, rows: list[Any]) -> None:
        self._known = {row[0]: Line(*row[1:]) for row in rows}
        self._size = sum(len(line.text or "") for line in self._known.values())

    def end(self, error: BaseException) -> BaseException:
        """The attempt ends with this, whatever its task makes of it."""
        self._over = error
        return error

    @property
    def strayed(self) -> BaseException | None:
        """That the task took another way, if it did; what it made of that error hides nothing."""
        return self._over if isinstance(self._over, NonDeterminism | NotRecorded) else None

    @property
    def met(self) -> int | None:
        """Nobody's concern: the next attempt goes on from what is stored."""
        return None

    def close(self) -> Asking[None]:
        """The task returns; NonDeterminism when earlier attempts did more than it came to."""
        if self.strayed is not None:
            raise self.strayed
        if self._known is None:
            answer = yield "load", self._who
            if not answer.ok and answer.payload is not None:
                return  # Nobody can say; that must not cost a task that never used a step.
            self._learn(self._heard(answer))
        left = [number for number in self._known or {} if number > self.count]
        if left:
            line = (self._known or {})[min(left)]
            raise self.end(NonDeterminism(min(left), spoken(line.kind, line.name), END))

    def keep(self, number: int, name: str, value: object) -> Asking[None]:
        """Write a finished step; BadPayload when its result cannot be stored."""
        if iscoroutine(value):
            value.close()
        try:
            packed = pack(value)
        except BadPayload as error:
            reason = f"The result of step {name!r} cannot be stored: {error.reason}"
            raise BadPayload(error.path, reason) from None
        self._size += len(packed.text)
        if self._size > CHARS_MAX:
            reason = f"The results of all steps of a run have at most {CHARS_MAX:,} characters."
            raise BadPayload("$", reason)
        line = {"sequence": number, "kind": STEP, "name": name}
        result = {"result": packed.text, "hash": packed.digest.hex()}
        self._heard((yield "note", self._who | line | result))

    def wait(self, kind: str, name: str, length: timedelta | None) -> Asking[str | None]:
        """What a wait ended with, None for its time being up; Suspended while it goes on."""
        number = self.number(kind, name)
        line = yield from self.find(number, kind, name)
        if line is not None and not line.open:
            return line.text
        delay = None if length is None else micros(length)
        asked = {"sequence": number, "kind": kind, "name": name, "delay_us": delay}
        is_open, text, left_us = self._heard((yield "note", self._who | asked))
        if not is_open or (left_us is not None and left_us <= 0 and kind == SLEEP):
            return text  # type: ignore[no-any-return]
        after = DURATION_MAX if left_us is None else timedelta(microseconds=max(left_us, 0))
        raise self.end(Suspended(after, kind, name if kind == EVENT else None))

    def _heard(self, answer: Answer) -> Any:
        if answer.ok:
            return answer.payload
        if answer.payload is None:
            raise self.end(LeaseGone("The attempt lost its lease; another one goes on."))
        raise ByroteError(f"The ledger could not be asked: {answer.payload}")


class Sync:
    """Asks and waits in the task's thread."""

    def __init__(self, ledger: Steps) -> None:
        self._ledger = ledger

    def step(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The function's result, of an earlier attempt if one finished this step."""
        number = self._ledger.number(STEP, name)
        line = self._run(self._ledger.find(number, STEP, name))
        if line is not None:
            return unpack(line.text or "null")
        with _within(number):
            value = function(*args, **kwargs)
        self._run(self._ledger.keep(number, name, value))
        return value

    def wait(self, kind: str, name: str, length: Length | None) -> str | None:
        """What a wait ended with; Suspended while it goes on."""
        return self._run(self._ledger.wait(kind, name, _length(length)))

    def close(self) -> None:
        """The task returns; NonDeterminism when it has not come to every line."""
        self._run(self._ledger.close())

    def _run[T](self, asking: Asking[T]) -> T:
        try:
            verb, payload = next(asking)
            while True:
                verb, payload = asking.send(self._ledger.desk.ask(self._ledger.slot, verb, payload))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


class Async:
    """Asks and lets other tasks of the loop work meanwhile."""

    def __init__(self, ledger: Steps) -> None:
        self._ledger = ledger

    async def step(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The function's result, awaited, or that of an earlier attempt."""
        number = self._ledger.number(STEP, name)
        line = await self._run(self._ledger.find(number, STEP, name))
        if line is not None:
            return unpack(line.text or "null")
        with _within(number):
            value = function(*args, **kwargs)
            if isawaitable(value):
                value = await value
        await self._run(self._ledger.keep(number, name, value))
        return value

    def wait(self, kind: str, name: str, length: Length | None) -> Awaitable[str | None]:
        """What a wait ended with; Suspended while it goes on."""
        return self._run(self._ledger.wait(kind, name, _length(length)))

    async def close(self) -> None:
        """The task returns; NonDeterminism when it has not come to every line."""
        await self._run(self._ledger.close())

    async def _run[T](self, asking: Asking[T]) -> T:
        try:
            verb, payload = next(asking)
            while True:
                verb, payload = asking.send(
                    await self._ledger.desk.aask(self._ledger.slot, verb, payload)
                )
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


@contextlib.contextmanager
def _within(number: int) -> Iterator[None]:
    # What a step draws must not change what is drawn after it: later attempts do not call it.
    token, tray = _inside.set(number), current_tray()
    opened = open_tray(tray.within(number)) if tray is not None and tray.job else None
    try:
        yield
    finally:
        _inside.reset(token)
        if opened is not None:
            shut_tray(opened)


def _length(value: Length | None) -> timedelta | None:
    return None if value is None else duration(value)


def spoken(kind: str, name: str) -> str:
    """A line in words."""
    return {STEP: f"step {name!r}", SLEEP: "a sleep", EVENT: f"a wait for {name!r}"}[kind]


def check_name(name: str) -> None:
    """Refuse what cannot name a step, an event or an effect."""
    if not isinstance(name, str) or not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        raise BadOption(f"A name has 1 to {NAME_MAX} printable characters, not {name!r:.80}.")
