# SPDX-License-Identifier: MIT
"""Byrote's own errors: one base, few children, each with a stable `code` and a way out."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from byrote.core.duration import duration
from byrote.core.text.redaction import redacted


class ByroteError(Exception):
    """Anything Byrote refuses or cannot do; `code` is stable and the same on every door.

    A message never holds the password of a URL that it quotes.
    """

    code: str = "error"

    def __init__(self, *parts: object) -> None:
        super().__init__(*(redacted(part) if isinstance(part, str) else part for part in parts))


class BadPayload(ByroteError, ValueError):
    """A value that could not come back exactly as sent; `path` says where, `reason` why."""

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
    """An option whose value makes no sense; the message says what to give instead."""

    code = "bad_option"


class UnknownTask(ByroteError, LookupError):
    """There is no task by this name and version here."""

    code = "unknown_task"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        names = ", ".join(sorted(known)[:20]) or "none"
        super().__init__(f"No task named {name!r}. Import its module first; known here: {names}.")
        self.name = name


class DuplicateTask(ByroteError, ValueError):
    """Two functions claim the same task name and version."""

    code = "duplicate_task"


class UnknownQueue(ByroteError, LookupError):
    """The queue is not one the app declared, or not one the database knows."""

    code = "unknown_queue"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        names = ", ".join(sorted(known)[:20]) or "none"
        super().__init__(f"No queue named {name!r}. Known: {names}.")
        self.name = name


class UnknownSchedule(ByroteError, LookupError):
    """No periodic task has this name."""

    code = "unknown_schedule"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        names = ", ".join(sorted(known)[:20]) or "none"
        super().__init__(f"No schedule named {name!r}. Known: {names}.")
        self.name = name


class BadArguments(ByroteError, TypeError):
    """The arguments do not fit the task's signature."""

    code = "bad_arguments"


class UnknownRun(ByroteError, LookupError):
    """No run has this id or hash."""

    code = "unknown_run"

    def __init__(self, which: str) -> None:
        super().__init__(f"No run {which!r}. It may have been pruned, or live in another database.")
        self.which = which


class AlteredSpec(ByroteError):
    """A run's stored spec is not the one it was accepted with."""

    code = "altered_spec"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"The stored spec of run {run_id} was altered: it does not have its hash. Enqueue what "
            "you mean as a new run."
        )
        self.run_id = run_id

    def __reduce__(self) -> tuple[type["AlteredSpec"], tuple[str]]:
        return type(self), (self.run_id,)


class NotThereThen(UnknownRun):
    """The event log does not know the run at the moment that was asked about."""

    def __init__(self, run_id: str, at: datetime) -> None:
        super().__init__(run_id)
        said = f"The log tells nothing of run {run_id!r} up to {at:%Y-%m-%d %H:%M:%S %Z}"
        why = "it was not accepted yet, or what was told then has been pruned"
        self.args = (f"{said}: {why}. `byrote runs history` shows what there is.",)
        self.at = at

    def __reduce__(self) -> tuple[type["NotThereThen"], tuple[str, datetime]]:
        return type(self), (self.which, self.at)


class RunFailed(ByroteError):
    """A run ended without a result; `status` and `faults` say how."""

    code = "run_failed"

    def __init__(self, run_id: str, status: str, faults: Sequence[Mapping[str, object]]) -> None:
        last = faults[-1] if faults else {}
        what = f": {last.get('type')}: {last.get('message')}" if last else ""
        super().__init__(f"Run {run_id} ended {status}{what}")
        self.run_id = run_id
        self.status = status
        self.faults = tuple(faults)


class ResultTimeout(ByroteError, TimeoutError):
    """A run had not finished when the caller's patience ended; the run goes on."""

    code = "result_timeout"


class Unreachable(ByroteError, ConnectionError):
    """Whoever keeps the runs did not answer; what was tried is in the message."""

    code = "unreachable"


class DatabaseUnreachable(Unreachable):
    """PostgreSQL did not answer; what was tried is in the message."""

    code = "database_unreachable"


class ServiceUnreachable(Unreachable):
    """The queue service did not answer; what was tried is in the message."""

    code = "service_unreachable"


class StoreRefused(ByroteError):
    """Whoever keeps the runs will not take this, and would not if it were asked again."""

    code = "store_refused"

    def __init__(self, message: str, brief: str | None = None) -> None:
        super().__init__(message)
        self.brief = brief or message
        """The same without anything that might quote what was sent."""


class ValueRefused(StoreRefused):
    """A value in what was sent is not acceptable: it is too large, or not what it should be."""


class RowLocked(StoreRefused):
    """Another transaction has locked a row for longer than the statement waits; later it may go."""

    code = "row_locked"


class KeyContended(ByroteError):
    """Runs with a unique key came and went faster than one of them could be told."""

    code = "key_contended"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Runs with the unique key {key!r} came and went while this one was to be enqueued; "
            "nothing was. Try again."
        )
        self.key = key

    def __reduce__(self) -> tuple[type["KeyContended"], tuple[str]]:
        return type(self), (self.key,)


class SchemaMismatch(ByroteError):
    """The database's schema is behind or ahead of this version of Byrote."""

    code = "schema_mismatch"


class RightMissing(ByroteError):
    """The database login lacks a right that its work takes."""

    code = "right_missing"


class RetryLater(ByroteError):
    """Raise in a task to ask for another attempt, after a delay of your choice or the policy's."""

    code = "retry_later"

    def __init__(self, message: str = "", *, after: timedelta | str | float | None = None) -> None:
        super().__init__(message or "The task asked to be tried again later.")
        self.after = None if after is None else duration(after)


class Fatal(ByroteError):
    """Raise in a task to end its run for good: no retry, straight to the dead letters."""

    code = "fatal"


class Snooze(ByroteError):
    """Raise in a task to step aside for a while; costs no attempt of the budget."""

    code = "snooze"

    def __init__(self, after: timedelta | str | float) -> None:
        self.after = duration(after)
        super().__init__(f"The task stepped aside for {self.after}.")


class NonDeterminism(ByroteError):
    """A task took another way than its ledger remembers; its run ends, for good."""

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
    """A replay asked for something that the run it repeats has no record of; the replay ends."""

    code = "not_recorded"


class WithheldInReplay(ByroteError):
    """A replay asked for something that would reach others; it was not sent."""

    code = "withheld_in_replay"


class LeaseGone(ByroteError):
    """The attempt lost its lease: its step was not stored, and nobody will hear its outcome."""

    code = "lease_gone"


class WaitTimeout(ByroteError, TimeoutError):
    """The signal a task waited for did not come in time."""

    code = "wait_timeout"


class MissingExtra(ByroteError, ImportError):
    """A package is not there that comes with an extra; the message says how to install it."""

    code = "missing_extra"


def missing_driver(what: str, error: ModuleNotFoundError) -> Exception:
    """What to say of a failed import: how to install PostgreSQL's driver, if it is that."""
    if error.name is None or error.name.partition(".")[0] != "psycopg":
        return error
    return MissingExtra(
        f"{what} needs a driver for PostgreSQL; run `pip install 'byrote[postgres]'`."
    )
