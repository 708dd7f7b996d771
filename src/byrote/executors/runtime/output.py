# SPDX-License-Identifier: MIT
"""Captures the output of attempts, up to a limit: the end of it is kept.

In a hand, `sys.stdout` and `sys.stderr` are streams that write through to the real ones and also
keep a copy for the attempt whose code is printing. An attempt is found by a context variable, which
follows coroutines and `asyncio.to_thread`; threads that a task starts by itself, and programs it
starts, print to the worker's own output only.
"""

import contextlib
import io
import sys
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TextIO

import msgspec

from byrote.core.json.seed import SEED_LABEL, place_digest, run_digest
from byrote.core.outcome import OUTPUT_MAX, Outcome, Output, Printing
from byrote.executors.runtime.job import Job, Result
from byrote.executors.shared.spool import Spool, serial_of


class Tail:
    """The end of a stream of bytes, and how much was dropped before it."""

    __slots__ = ("_chunks", "_limit", "_size", "dropped")

    def __init__(self, limit: int = OUTPUT_MAX) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self.dropped = 0

    def add(self, chunk: bytes) -> None:
        """Add the bytes that were written next."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        # Whole chunks only, so that this stays cheap; `kept` cuts to the byte.
        while self._size - len(self._chunks[0]) >= self._limit:
            gone = len(self._chunks.popleft())
            self._size -= gone
            self.dropped += gone

    @property
    def total(self) -> int:
        """The number of bytes in all."""
        return self.dropped + self._size

    @property
    def kept(self) -> bytes:
        """At most `limit` bytes from the end."""
        whole = b"".join(self._chunks)
        over = max(len(whole) - self._limit, 0)
        self.dropped += over
        self._chunks = deque((whole[over:],))
        self._size = len(whole) - over
        return self._chunks[0]


def readable(raw: bytes, *, cut: bool) -> str:
    """Bytes as text that any database accepts; invalid UTF-8 is escaped."""
    if cut:
        # The cut may have split a character; drop the rest of it.
        start = next((i for i, byte in enumerate(raw[:4]) if byte & 0xC0 != 0x80), 0)
        raw = raw[start:]
    return raw.decode("utf-8", "backslashreplace").replace("\x00", "\\x00")[-OUTPUT_MAX:]


def output_of(stdout: Tail, stderr: Tail) -> Output | None:
    """Both streams as they are stored; None when nothing was printed."""
    out, err = stdout.kept, stderr.kept
    if not out and not err:
        return None
    return Output(
        readable(out, cut=stdout.dropped > 0),
        readable(err, cut=stderr.dropped > 0),
        stdout.dropped,
        stderr.dropped,
    )


def inherit(fate: Outcome, outcome: Outcome) -> Outcome:
    """The outcome of a stopped attempt, with the output it had printed until then."""
    output = outcome.output
    return fate if output is None else msgspec.structs.replace(fate, output=output)


def with_output(outcome: Outcome, printed: Printing | None) -> Outcome:
    """The outcome with its attempt's output, unless it already has one."""
    if printed is None or outcome.output is not None:
        return outcome
    out_cut = printed.stdout_size - len(printed.stdout)
    err_cut = printed.stderr_size - len(printed.stderr)
    output = Output(
        readable(printed.stdout, cut=out_cut > 0),
        readable(printed.stderr, cut=err_cut > 0),
        out_cut,
        err_cut,
    )
    return msgspec.structs.replace(outcome, output=output)


def job_digest(job: Job) -> bytes:
    """The digest of a job's run, see `core/json/seed.py`; labels are read only if they matter."""
    labels = job.labels_json
    known = msgspec.json.decode(labels) if labels and SEED_LABEL in labels else None
    return run_digest(job.id, known)


class AttemptScope(msgspec.Struct, eq=False):
    """The state of one attempt in a hand: its output and values kept for it.

    Closed, it takes no more prints.
    """

    job: Job | None = None
    """The attempt itself; None for code that belongs to no attempt."""
    closed: bool = False
    serial: int | None = None
    """Its number in the spool, once it has printed."""
    tails: tuple[Tail, Tail] | None = None
    kept: dict[str, Any] | None = None
    """Values of this attempt, see `keep`."""
    outer: "AttemptScope | None" = None
    """The scope of the attempt, if this is the scope of one of its steps."""
    error: BaseException | None = None
    """The exception that ended it, until it was logged."""
    digest: bytes | None = None
    """The digest that seeds its random numbers, if it is not the run's; see `seed_digest`."""

    def within(self, place: str) -> "AttemptScope":
        """Return a scope for a step: with the attempt's output and its own random numbers."""
        inner = AttemptScope(self.job)
        inner.outer = self
        inner.digest = place_digest(self.seed_digest(), place)
        return inner

    def seed_digest(self) -> bytes:
        """The digest that seeds the attempt's random numbers; computed at the first draw."""
        if self.digest is None:
            assert self.job is not None  # noqa: S101 -- only attempts draw seeded numbers.
            self.digest = job_digest(self.job)
        return self.digest

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the attempt's value by this name; makes it at the first call."""
        if self.kept is None:
            self.kept = {}
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def add(self, index: int, chunk: bytes) -> None:
        """Store a copy of what was printed to stdout (0) or stderr (1)."""
        if self.outer is not None:
            self.outer.add(index, chunk)
            return
        if self.closed:
            return
        if self.tails is None:
            self.tails = (Tail(), Tail())
        tail = self.tails[index]
        tail.add(chunk)
        if _spools and self.job is not None:
            if self.serial is None:
                self.serial = serial_of(self.job.id, self.job.attempt)
            _spools[0].write(self.serial, index, chunk, tail.total)

    def close_with[R: Result](self, result: R) -> R:
        """End the attempt; adds its output and its resource usage, if known, to the result."""
        self.closed = True
        if self.tails is not None:
            result.output = output_of(*self.tails)
        if self.kept is not None:
            result.usage = self.kept.get("usage")
        return result


_spools: list[Spool] = []
"""The spool that this process prints into, if it is a hand."""
_scope: ContextVar[AttemptScope | None] = ContextVar("byrote_tray", default=None)
open_scope = _scope.set
"""Set the scope that receives what this thread or coroutine prints from now on."""
reset_scope = _scope.reset
"""Restore the scope before the one that was opened with this token."""
current_scope = _scope.get
"""The scope of the attempt whose code is calling, or None."""


def attempt_fields() -> dict[str, Any] | None:
    """The fields by which log lines name the attempt whose code is calling, if any."""
    scope = _scope.get()
    job = None if scope is None else scope.job
    if job is None:
        return None
    return {"run": job.id, "attempt": job.attempt, "task": job.task, "queue": job.queue}


class Tee(io.TextIOBase):
    """A text stream that writes through, and stores a copy for the attempt that prints."""

    def __init__(self, real: TextIO, index: int) -> None:
        self._real = real
        self._index = index
        self.buffer = _Bytes(real, index)

    def write(self, text: str) -> int:
        """Write through, and store the copy."""
        scope = _scope.get()
        if scope is not None:
            scope.add(self._index, text[-OUTPUT_MAX:].encode("utf-8", "backslashreplace"))
        return self._real.write(text)

    def flush(self) -> None:
        """Flush the real stream."""
        self._real.flush()

    def fileno(self) -> int:
        """The real stream's descriptor; bytes written to it directly are not stored."""
        return self._real.fileno()

    def isatty(self) -> bool:
        """Whether the real stream is a terminal."""
        return self._real.isatty()

    def writable(self) -> bool:
        """Always True."""
        return True

    def close(self) -> None:
        """Do nothing: the streams are the hand's, not the task's."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Bytes:
    """The binary side of a Tee."""

    def __init__(self, real: TextIO, index: int) -> None:
        self._real = real
        self._index = index

    def write(self, data: Any) -> int:
        scope = _scope.get()
        if scope is not None:
            scope.add(self._index, bytes(memoryview(data).cast("B")[-OUTPUT_MAX:]))
        self._real.flush()
        return self._real.buffer.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real.buffer, name)


def capture_streams(spool: Spool | None = None) -> None:
    """Replace this process's stdout and stderr by Tees."""
    if spool is not None:
        spool.belong_to_this_process()
        _spools[:] = [spool]
    for index, name in enumerate(("stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Tee):
            with contextlib.suppress(AttributeError):
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, Tee(stream, index))
