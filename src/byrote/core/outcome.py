# SPDX-License-Identifier: MIT
"""The outcome of one attempt, as a value; a failing task is expected, not an exception."""

import re
from datetime import timedelta
from typing import NamedTuple

import msgspec

TEXT_MAX = 4_000
TRACEBACK_MAX = 16_000
OUTPUT_MAX = 1024 * 1024
"""Bytes of stdout, and of stderr, that are stored for one attempt."""
BRIEF_MAX = 200
"""Characters of an error's message in an event."""
_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in (.+)$', re.MULTILINE)


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt ended without a result, safe to store and to show."""

    kind: str
    """`raised`, `timeout`, `crashed`, `lost`, `bad_result`, `bad_arguments`,
    `nondeterminism` or `unknown_task`;
    of a command also what `executors/commands/envelope.py` lists."""
    type: str
    """The class path of the exception, or the name of another cause."""
    message: str = ""
    traceback: str | None = None
    signal: str | None = None
    exit_code: int | None = None
    attempt: int = 0
    worker: str = ""
    stderr: str | None = None
    """The end of a command's standard error."""
    met: list[int] | None = None
    """Of a replay: the recorded steps, sleeps and waits that it had reached."""


def kind_and_type(fault: Fault) -> str:
    """Describe a fault without its message, which may quote what the task was given."""
    return f"{fault.kind} {fault.type}"


def brief(fault: Fault) -> str:
    """Describe a fault in one line: kind, type, message, and where it was raised."""
    message = " ".join(fault.message[:BRIEF_MAX].split())
    text = f"{kind_and_type(fault)}: {message}" if message else kind_and_type(fault)
    frames = _FRAME.findall(fault.traceback or "")
    if not frames:
        return text
    path, line, function = frames[-1]
    return f"{text} ({path.rpartition('/')[2]}:{line} in {function})"


class Output(msgspec.Struct, frozen=True):
    """Output of an attempt: the end of each stream, and how many bytes were dropped before it."""

    stdout: str = ""
    stderr: str = ""
    stdout_dropped: int = 0
    stderr_dropped: int = 0


class Printing(NamedTuple):
    """Output of an attempt so far: the end of each stream, and its size in bytes."""

    stdout: bytes
    stderr: bytes
    stdout_size: int
    stderr_size: int


class Succeeded(msgspec.Struct, frozen=True, tag=True):
    """The task returned; its result is stored as this JSON text."""

    text: str
    digest: str
    """SHA-256 of the result's canonical form, in hexadecimal."""
    output: Output | None = None
    usage: dict[str, int] | None = None
    """Resource usage of the attempt, if it was measured."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The task raised, timed out, or took its process down."""

    fault: Fault
    after: timedelta | None = None
    """The delay that the task asked for, if any."""
    final: bool = False
    """Whether the task ruled out a retry."""
    output: Output | None = None
    usage: dict[str, int] | None = None


class Snoozed(msgspec.Struct, frozen=True, tag=True):
    """The task postponed its run."""

    after: timedelta
    output: Output | None = None
    usage: dict[str, int] | None = None
    wait: str | None = None
    """The kind of a durable wait: `sleep` or `event`; None for a plain snooze."""
    event: str | None = None
    """The signal it waits for."""


class Cancelled(msgspec.Struct, frozen=True, tag=True):
    """The run was cancelled on request."""

    output: Output | None = None
    usage: dict[str, int] | None = None


class Released(msgspec.Struct, frozen=True, tag=True):
    """The attempt was released before it had an outcome, for no fault of its task."""

    output: Output | None = None
    usage: dict[str, int] | None = None


class Crashed(msgspec.Struct, frozen=True, tag=True):
    """The attempt's process died, and nothing proves that this task was the cause."""

    fault: Fault
    output: Output | None = None
    usage: dict[str, int] | None = None


type Outcome = Succeeded | Failed | Snoozed | Cancelled | Released | Crashed


def safe_text(text: str, limit: int = TEXT_MAX) -> str:
    """Returns text that databases and terminals accept: no NUL, no lone surrogates, bounded."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")
    return clean if len(clean) <= limit else f"{clean[: limit - 20]} … ({len(clean):,} long)"
