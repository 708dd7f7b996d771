# SPDX-License-Identifier: MIT
"""Reads the result of a command, and names the fault when a valid one is missing.

Kinds of fault, beside `raised` and those the envelope itself names:

| kind | what happened |
|---|---|
| `cannot_start` | the program does not exist, or may not be executed |
| `no_result` | exit code 0, nothing on descriptor 3, and nothing printed |
| `closed_stdout` | the same, and stdout was closed long before the end |
| `garbage` | exit code 0, and the last line, or descriptor 3, is not an envelope |
| `two_results` | more than one envelope |
| `output_too_large` | the envelope is larger than a result may be |
| `bad_result` | the envelope is one, but its result cannot be stored |
| `exit_code` | another exit code than 0, and no envelope that explains it |
| `killed` | a signal ended it that was not ours |
| `timeout` | it ran past its timeout and heeded SIGTERM |
| `ignored_sigterm` | it ran past its timeout and had to be killed |
"""

import json
import os
import signal
from typing import Literal, NamedTuple

import msgspec

from byrote.core.duration import duration
from byrote.core.errors import BadPayload
from byrote.core.json.codec import PAYLOAD_MAX, check_text
from byrote.core.outcome import (
    TRACEBACK_MAX,
    Failed,
    Fault,
    Outcome,
    Snoozed,
    Succeeded,
    safe_text,
)
from byrote.executors.runtime.output import readable

ENVELOPE_MAX = PAYLOAD_MAX + 64 * 1024
"""Maximum bytes of an envelope: a result of the maximum size, and the fields around it."""
STDERR_TAIL = 2_000
REPORTABLE_KINDS = frozenset(
    {"raised", "bad_result", "bad_arguments", "unknown_task", "nondeterminism", "not_recorded"}
)
"""Kinds that an envelope may set for its error."""
_NOTHING = msgspec.Raw(b"null")


class _Error(msgspec.Struct, frozen=True):
    type: str = "Error"
    message: str = ""
    traceback: str | None = None
    kind: str = "raised"
    met: list[int] | None = None


class _Envelope(msgspec.Struct, frozen=True):
    ok: bool | None = None
    result: msgspec.Raw = _NOTHING
    error: _Error = _Error()
    retry_after: float | None = None
    fatal: bool = False
    snooze: float | None = None
    wait: Literal["sleep", "event"] | None = None
    event: str | None = None

    @property
    def empty(self) -> bool:
        return self.ok is None and self.snooze is None


_read = msgspec.json.Decoder(_Envelope).decode


class CommandEnd(NamedTuple):
    """The exit code and output of a command."""

    code: int
    """Its exit code; negative for a signal."""
    envelope: bytes
    """The bytes it wrote to descriptor 3."""
    stdout: bytes
    """The end of what it wrote to stdout."""
    stderr: bytes
    envelope_cut: bool = False
    """Whether more was written to descriptor 3 than is stored."""
    stdout_cut: bool = False
    """Whether more was printed before than is stored."""
    closed: bool = False
    """Whether stdout was closed while it ran on."""
    bare: bool = False
    """Whether a JSON document that is not an envelope counts as the result."""
    attempt: int = 0
    worker: str = ""


class Reading(NamedTuple):
    """The outcome of a command, and its stdout without the envelope."""

    outcome: Outcome
    stdout: bytes


class _Bad(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def read_end(end: CommandEnd) -> Reading:
    """The outcome of a command that ended by itself."""
    line, before = (end.envelope, end.stdout) if end.envelope.strip() else _last_line(end.stdout)
    try:
        return Reading(_outcome(end, _envelope(end, line, before)), before)
    except _Bad as bad:
        # Show the whole stdout, with the line that could not be read.
        return Reading(_failed(end, bad.kind, str(bad)), end.stdout)


def _last_line(stdout: bytes) -> tuple[bytes, bytes]:
    before, _, line = stdout.rstrip().rpartition(b"\n")
    return line.strip(), before + b"\n" if before else b""


def _envelope(end: CommandEnd, line: bytes, before: bytes) -> _Envelope:
    if end.code < 0:
        raise _Bad("killed", f"The command was killed by {_name(-end.code)}.")
    on_stdout = not end.envelope.strip()
    # Only the end of a longer stdout is stored, so a last line that has a beginning is whole.
    if (end.stdout_cut and not before) if on_stdout else end.envelope_cut:
        raise _Bad("output_too_large", f"The result is larger than {ENVELOPE_MAX:,} bytes.")
    if not line:
        raise _silence(end)
    try:
        envelope = _read(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        envelope = _lenient(line) or _no_envelope(end, line, str(error))
    if envelope.empty:
        return _no_envelope(end, line, "it has neither 'ok' nor 'snooze'")
    if on_stdout and any(map(_is_envelope, before.splitlines()[-50:])):
        raise _Bad("two_results", "The command printed more than one result.")
    return envelope


def _lenient(line: bytes) -> _Envelope | None:
    """An envelope in JSON that other languages write and we refuse: NaN, or half a surrogate pair.

    As a result such a value cannot be stored: `check_text` raises. In an error it is replaced.
    """
    try:
        found = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys().isdisjoint({"ok", "snooze"}):
        return None
    result = json.dumps(found.pop("result", None)).encode()
    try:
        envelope = _read(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return msgspec.structs.replace(envelope, result=msgspec.Raw(result))


def _no_envelope(end: CommandEnd, line: bytes, why: str) -> _Envelope:
    if end.bare and end.code == 0 and _is_json(line):
        return _Envelope(ok=True, result=msgspec.Raw(line))
    if end.envelope.strip() and _documents(line) > 1:
        raise _Bad("two_results", "The command wrote more than one result.")
    if end.code != 0:
        raise _silence(end)
    shown = readable(line[:80], cut=False)
    raise _Bad("garbage", f"The command's result is not an envelope ({why}): {shown!r}")


def _is_envelope(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        return not _read(line).empty
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _documents(written: bytes) -> int:
    """How many JSON documents follow each other; 0 when something else is among them."""
    text, count, decoder = written.decode("utf-8", "replace").strip(), 0, json.JSONDecoder()
    while text:
        try:
            _, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return 0
        text, count = text[end:].lstrip(), count + 1
    return count


def _silence(end: CommandEnd) -> _Bad:
    if end.code != 0:
        return _Bad("exit_code", f"The command exited with code {end.code} and gave no result.")
    if end.closed:
        return _Bad("closed_stdout", "The command closed its stdout early and gave no result.")
    return _Bad("no_result", "The command exited with code 0 but gave no result.")


def _outcome(end: CommandEnd, envelope: _Envelope) -> Outcome:
    try:
        if envelope.snooze is not None:
            wait, event = envelope.wait, envelope.event
            return Snoozed(duration(envelope.snooze), wait=wait, event=event)
        after = None if envelope.retry_after is None else duration(envelope.retry_after)
    except ValueError as error:
        raise _Bad("garbage", f"The envelope holds no duration: {error}") from None
    if not envelope.ok:
        return Failed(_envelope_fault(end, envelope.error), after=after, final=envelope.fatal)
    if end.code != 0:
        raise _Bad("exit_code", f"The command reported ok but exited with code {end.code}.")
    try:
        packed = check_text(bytes(envelope.result))
    except BadPayload as error:
        raise _Bad(
            "bad_result", f"The task returned a value that cannot be stored: {error}"
        ) from None
    return Succeeded(packed.text, packed.digest.hex())


def _envelope_fault(end: CommandEnd, error: _Error) -> Fault:
    trace = error.traceback
    return Fault(
        kind=error.kind if error.kind in REPORTABLE_KINDS else "raised",
        type=safe_text(error.type, 200),
        message=safe_text(error.message),
        traceback=None if trace is None else safe_text(trace[-TRACEBACK_MAX:], TRACEBACK_MAX),
        exit_code=end.code,
        attempt=end.attempt,
        worker=end.worker,
        stderr=stderr_tail(end.stderr),
        met=error.met,
    )


def _failed(end: CommandEnd, kind: str, message: str) -> Failed:
    return Failed(
        Fault(
            kind=kind,
            type="CommandFailed",
            message=safe_text(message),
            signal=_name(-end.code) if end.code < 0 else None,
            exit_code=end.code if end.code >= 0 else None,
            attempt=end.attempt,
            worker=end.worker,
            stderr=stderr_tail(end.stderr),
        )
    )


def late_fault(end: CommandEnd, *, limit_ms: int, killed: bool) -> Fault:
    """The fault of a command that ran past its timeout."""
    message = f"The attempt ran longer than its timeout of {limit_ms / 1000:g} s."
    failed = _failed(end, "ignored_sigterm" if killed else "timeout", message)
    ignored = f"{message} It ignored SIGTERM and was killed." if killed else message
    return msgspec.structs.replace(failed.fault, type="TimedOut", message=ignored)


def start_fault(program: str, number: int, *, attempt: int, worker: str) -> Fault:
    """The fault of a command that could not be started."""
    message = f"{program} cannot be started: {os.strerror(number)}."
    return Fault("cannot_start", "CommandFailed", safe_text(message), None, attempt=attempt,
                 worker=worker)  # fmt: skip


def stderr_tail(stderr: bytes) -> str | None:
    """The end of stderr as it is stored in a fault; None when there was nothing."""
    if not stderr:
        return None
    return readable(stderr[-STDERR_TAIL:], cut=len(stderr) > STDERR_TAIL)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
