# SPDX-License-Identifier: MIT
"""What happened in one attempt, as a value; a failing task is expected, not a surprise."""

from datetime import timedelta
from typing import NamedTuple

import msgspec

TEXT_MAX = 4_000
TRACEBACK_MAX = 16_000
OUTPUT_MAX = 1024 * 1024
"""Bytes of stdout, and of stderr, that are kept of one attempt."""


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt ended without a result, safe to store and to show."""

    kind: str
    """`raised`, `timeout`, `crashed`, `lost`, `bad_result`, `bad_arguments`,
    `nondeterminism` or `unknown_task`;
    of a command also what `executors/commands/envelope.py` lists."""
    type: str
    """The exception's class path, or the name of what happened."""
    message: str = ""
    traceback: str | None = None
    signal: str | None = None
    exit_code: int | None = None
    attempt: int = 0
    worker: str = ""
    stderr: str | None = None
    """The end of what a command wrote there."""
    met: list[int] | None = None
    """Of a replay: how many of the recorded steps, sleeps and waits it had come to."""


class Output(msgspec.Struct, frozen=True):
    """What an attempt printed: the end of each stream, and how many bytes came before it."""

    stdout: str = ""
    stderr: str = ""
    stdout_dropped: int = 0
    stderr_dropped: int = 0


class Printing(NamedTuple):
    """What an attempt has printed so far: the end of each stream, and how many bytes it was."""

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
    """What the attempt used, if it was measured."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The task raised, timed out, or took its process down."""

    fault: Fault
    after: timedelta | None = None
    """When the task itself asked for a delay."""
    final: bool = False
    """The task said that no retry will help."""
    output: Output | None = None
    usage: dict[str, int] | None = None


class Snoozed(msgspec.Struct, frozen=True, tag=True):
    """The task stepped aside."""

    after: timedelta
    output: Output | None = None
    usage: dict[str, int] | None = None
    wait: str | None = None
    """What a durable wait is for: `sleep` or `event`; None for a plain snooze."""
    event: str | None = None
    """The signal it waits for."""


class Cancelled(msgspec.Struct, frozen=True, tag=True):
    """Somebody asked for the run to stop, and it did."""

    output: Output | None = None
    usage: dict[str, int] | None = None


class Released(msgspec.Struct, frozen=True, tag=True):
    """The attempt was given back before it came to anything; nobody is to blame."""

    output: Output | None = None
    usage: dict[str, int] | None = None


class Crashed(msgspec.Struct, frozen=True, tag=True):
    """The attempt's process went down, and nothing shows that this task was the cause."""

    fault: Fault
    output: Output | None = None
    usage: dict[str, int] | None = None


type Outcome = Succeeded | Failed | Snoozed | Cancelled | Released | Crashed


def safe_text(text: str, limit: int = TEXT_MAX) -> str:
    """Text that any database and any terminal takes: no NUL, no lone surrogates, bounded."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")
    return clean if len(clean) <= limit else f"{clean[: limit - 20]} … ({len(clean):,} long)"
