# SPDX-License-Identifier: MIT
"""Byrote's own errors: one base, few children, each with a stable `code` and a way out."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from byrote.core.duration import duration
from byrote.core.text.printable import one_line
from byrote.core.text.redaction import redacted


class ByroteError(Exception):
    """Base class of Byrote's errors; `code` is stable, and the same in Python, HTTP and the CLI.

    Passwords of URLs are redacted from the message.
    """

    code: str = "error"

    def __init__(self, *parts: object) -> None:
        super().__init__(*(redacted(part) if isinstance(part, str) else part for part in parts))


def _some(known: Sequence[str]) -> str:
    """Up to twenty of the known names, on one line: a name from the database may be hostile."""
    return one_line(", ".join(sorted(known)[:20])) or "none"


class BadPayload(ByroteError, ValueError):
    """A value that JSON would not return exactly as sent; see `path` and `reason`."""

    code = "bad_payload"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type["BadPayload"], tuple[str, str]]:
        # Exceptions pickle their message as the only argument; ours take the two parts.
        return type(self), (self.path, self.reason)


class PayloadTooLarge(BadPayload):
    """A payload over its limit; `size` and `limit` are in bytes of JSON text."""

    code = "payload_too_large"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            "$",
            f"The payload has {size:,} bytes of JSON and the limit is {limit:,}. Store it "
            "elsewhere (a table, a file, an object store) and send a reference to it.",
        )
        self.size = size
        self.limit = limit

    def __reduce__(self) -> tuple[type["PayloadTooLarge"], tuple[int, int]]:  # type: ignore[override]
        return type(self), (self.size, self.limit)


class BadOption(ByroteError, ValueError):
    """An option has an invalid value; the message has what to use instead."""

    code = "bad_option"


class UnsupportedSystem(ByroteError, RuntimeError):
    """The operating system is not supported for this; on Windows, use WSL."""

    code = "unsupported_system"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} on Linux and macOS, not on native Windows. "
            "Use WSL: https://learn.microsoft.com/windows/wsl/install"
        )
        self.what = what

    def __reduce__(self) -> tuple[type["UnsupportedSystem"], tuple[str]]:
        return type(self), (self.what,)


class UnknownTask(ByroteError, LookupError):
    """No task with this name and version is registered in this process."""

    code = "unknown_task"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        todo = f"Import its module first; known here: {_some(known)}."
        super().__init__(f"No task named {name!r}. {todo}")
        self.name = name


class RunsLeft(ByroteError):
    """A worker drained its queues and left runs that it could not execute."""

    code = "runs_left"


class DuplicateTask(ByroteError, ValueError):
    """Two functions are defined under one task name and version."""

    code = "duplicate_task"


class UnknownQueue(ByroteError, LookupError):
    """The queue was not declared by the app, or does not exist in the database."""

    code = "unknown_queue"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"No queue named {name!r}. Known: {_some(known)}.")
        self.name = name


class UnknownSchedule(ByroteError, LookupError):
    """No periodic task has this name."""

    code = "unknown_schedule"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"No schedule named {name!r}. Known: {_some(known)}.")
        self.name = name


class BadArguments(ByroteError, TypeError):
    """The arguments do not fit the task's signature."""

    code = "bad_arguments"


class RunNotFound(ByroteError, LookupError):
    """No run has this id or hash."""

    code = "run_not_found"

    def __init__(self, which: str) -> None:
        super().__init__(f"No run {which!r}. It may have been pruned, or be in another database.")
        self.which = which


class AlteredSpec(ByroteError):
    """A run's stored spec does not match the hash that it was accepted with."""

    code = "altered_spec"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"The stored spec of run {run_id} was altered: it does not match its hash. Enqueue a "
            "new run instead."
        )
        self.run_id = run_id

    def __reduce__(self) -> tuple[type["AlteredSpec"], tuple[str]]:
        return type(self), (self.run_id,)


class NotThereThen(RunNotFound):
    """The event log has no event of the run up to the requested moment."""

    def __init__(self, run_id: str, at: datetime) -> None:
        super().__init__(run_id)
        missing = f"The log has no event of run {run_id!r} up to {at:%Y-%m-%d %H:%M:%S %Z}"
        why = "it was not accepted yet, or the events of that time have been pruned"
        self.args = (f"{missing}: {why}. `byrote runs history` lists the events that remain.",)
        self.at = at

    def __reduce__(self) -> tuple[type["NotThereThen"], tuple[str, datetime]]:
        return type(self), (self.which, self.at)


class RunFailed(ByroteError):
    """A run ended without a result; `status` and `faults` have the details."""

    code = "run_failed"

    def __init__(self, run_id: str, status: str, faults: Sequence[Mapping[str, object]]) -> None:
        last = faults[-1] if faults else {}
        what = f": {last.get('type')}: {last.get('message')}" if last else ""
        super().__init__(f"Run {run_id} ended {status}{what}")
        self.run_id = run_id
        self.status = status
        self.faults = tuple(faults)


class ResultTimeout(ByroteError, TimeoutError):
    """The run had not finished when the caller's timeout expired; the run continues."""

    code = "result_timeout"


class Unreachable(ByroteError, ConnectionError):
    """The store of the runs did not answer; the message has what was tried."""

    code = "unreachable"


class DatabaseUnreachable(Unreachable):
    """PostgreSQL did not answer; the message has what was tried."""

    code = "database_unreachable"


class PoolExhausted(DatabaseUnreachable):
    """All connections of a pool are in use, and none became free in time."""

    code = "pool_exhausted"


class DatabaseRefused(DatabaseUnreachable):
    """PostgreSQL answered and refused the login: no such database or role, or a wrong password."""

    code = "database_refused"


class ServiceUnreachable(Unreachable):
    """The queue service did not answer; the message has what was tried."""

    code = "service_unreachable"


class StoreRefused(ByroteError):
    """The store rejected the request, and would reject a retry as well."""

    code = "store_refused"

    def __init__(self, message: str, brief: str | None = None) -> None:
        super().__init__(message)
        self.brief = brief or message
        """The message without values from the request."""


class ValueRefused(StoreRefused):
    """The store rejected a value of the request: too large, or of the wrong form."""


class RowLocked(StoreRefused):
    """Another transaction holds a row lock for longer than the statement waits; retry later."""

    code = "row_locked"


class KeyContended(ByroteError):
    """Runs with a unique key started and ended faster than one of them could be returned."""

    code = "key_contended"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Other runs with the unique key {key!r} started and ended during this enqueue; "
            "nothing was enqueued. Try again."
        )
        self.key = key

    def __reduce__(self) -> tuple[type["KeyContended"], tuple[str]]:
        return type(self), (self.key,)


class SchemaMismatch(ByroteError):
    """The database's schema is behind or ahead of this version of Byrote."""

    code = "schema_mismatch"


class RightMissing(ByroteError):
    """The database role lacks a privilege that its work needs."""

    code = "right_missing"


class RetryLater(ByroteError):
    """Raise in a task to request another attempt, after this delay or the retry policy's."""

    code = "retry_later"

    def __init__(self, message: str = "", *, after: timedelta | str | float | None = None) -> None:
        super().__init__(message or "The task asked to be tried again later.")
        self.after = None if after is None else duration(after)


class Fatal(ByroteError):
    """Raise in a task to end its run for good: no retry, straight to the dead letters."""

    code = "fatal"


class Snooze(ByroteError):
    """Raise in a task to postpone the run; does not count as an attempt."""

    code = "snooze"

    def __init__(self, after: timedelta | str | float) -> None:
        self.after = duration(after)
        super().__init__(f"The task stepped aside for {self.after}.")


class NonDeterminism(ByroteError):
    """A task called other steps than its ledger has recorded; the run fails for good."""

    code = "nondeterminism"

    def __init__(self, where: str, recorded: str, now: str) -> None:
        super().__init__(
            f"{where} was {recorded} in an earlier attempt and is {now} now. Each branch of a task "
            "must call its steps in the same order in every attempt; give a changed task a new "
            "version."
        )
        self.where = where
        self.recorded = recorded
        self.now = now

    def __reduce__(self) -> tuple[type["NonDeterminism"], tuple[str, str, str]]:
        return type(self), (self.where, self.recorded, self.now)


class NotRecorded(ByroteError):
    """A replay needs a step that the original run did not record; the replay ends."""

    code = "not_recorded"


class WithheldInReplay(ByroteError):
    """A replay made a call with effects outside of it; the call was not sent."""

    code = "withheld_in_replay"


class LeaseLost(ByroteError):
    """The attempt lost its lease: its step was not stored, and its outcome will be rejected."""

    code = "lease_gone"


class WaitTimeout(ByroteError, TimeoutError):
    """The signal that a task waited for did not arrive in time."""

    code = "wait_timeout"


class StepFailed(ByroteError):
    """A step that failed in an earlier attempt, with an error whose class this process lacks."""

    code = "step_failed"

    def __init__(self, type: str, message: str) -> None:  # noqa: A002 -- the same name as in a fault.
        super().__init__(f"{type}: {message}")
        self.type = type
        self.message = message

    def __reduce__(self) -> tuple["type[StepFailed]", tuple[str, str]]:
        return StepFailed, (self.type, self.message)


class MissingExtra(ByroteError, ImportError):
    """A package of an optional extra is not installed; the message has the command."""

    code = "missing_extra"


def missing_driver(what: str, error: ModuleNotFoundError) -> Exception:
    """Returns MissingExtra if PostgreSQL's driver is what could not be imported, else `error`."""
    if error.name is None or error.name.partition(".")[0] != "psycopg":
        return error
    return MissingExtra(
        f"{what} needs a driver for PostgreSQL; run `pip install 'byrote[postgres]'`."
    )
