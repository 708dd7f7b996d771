# SPDX-License-Identifier: MIT
"""Retry policies and verdicts. Only `judge` decides what follows from an outcome."""

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from byrote.core.duration import DurationLike, duration
from byrote.core.errors import BadOption
from byrote.core.outcome import Cancelled, Crashed, Failed, Outcome, Released, Snoozed, Succeeded
from byrote.core.run import Leased

ATTEMPTS_MAX = 1_000
LOSSES_MAX = 10
"""How often a run may be lost with its worker before the run counts as the cause."""

type Backoff = Literal["exponential", "linear", "fixed"]


class Retry(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often a run is tried and how long it waits in between."""

    attempts: int = 5
    """Tries in all, the first included."""
    backoff: Backoff = "exponential"
    """`exponential`, `linear` or `fixed`: how the waits grow."""
    delay_first: timedelta = timedelta(seconds=2)
    """The wait before the second try, before jitter."""
    delay_max: timedelta = timedelta(hours=1)
    """The longest wait."""
    factor: float = 2.0
    """The multiplier of each wait; exponential back-off only."""
    jitter: bool = True
    """Wait a fraction of the back-off drawn from the spec's hash: the same on replay."""
    age_max: timedelta | None = None
    """Never retry a run that would then be older than this."""

    if TYPE_CHECKING:

        def __init__(
            self,
            attempts: int = 5,
            backoff: Backoff = "exponential",
            delay_first: DurationLike = timedelta(seconds=2),
            delay_max: DurationLike = timedelta(hours=1),
            *,
            factor: float = 2.0,
            jitter: bool = True,
            age_max: DurationLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or not 1 <= self.attempts <= ATTEMPTS_MAX:
            raise BadOption(
                f"Retry attempts are between 1 and {ATTEMPTS_MAX}, not {self.attempts!r}."
            )
        if type(self.factor) not in (int, float) or not 1.0 <= self.factor <= 100.0:
            raise BadOption(f"A retry factor is between 1 and 100, not {self.factor!r}.")
        if type(self.jitter) is not bool:
            raise BadOption(f"A retry's jitter is True or False, not {self.jitter!r}.")
        if self.backoff not in ("exponential", "linear", "fixed"):
            raise BadOption(
                f"A back-off is 'exponential', 'linear' or 'fixed', not {self.backoff!r}."
            )
        for name in ("delay_first", "delay_max", "age_max"):
            value = getattr(self, name)
            if value is not None:
                msgspec.structs.force_setattr(self, name, duration(value))

    def delay_before(self, attempt: int, digest: bytes) -> timedelta:
        """Back off before `attempt` (2, 3, …); the same spec always waits the same time."""
        step = max(attempt - 2, 0)
        match self.backoff:
            case "exponential":
                # Past 64 doublings every cap is reached; unbounded, a float would overflow.
                scale = self.factor ** min(step, 64)
            case "linear":
                scale = float(step + 1)
            case "fixed":
                scale = 1.0
        seconds = min(self.delay_first.total_seconds() * scale, self.delay_max.total_seconds())
        return timedelta(seconds=seconds * (_fraction(digest, attempt) if self.jitter else 1.0))


ONCE = Retry(attempts=1)


def _fraction(digest: bytes, attempt: int) -> float:
    drawn = hashlib.sha256(digest + attempt.to_bytes(4, "big")).digest()
    return int.from_bytes(drawn[:8], "big") / 2**64


class Succeed(msgspec.Struct, frozen=True):
    """Store the result; the run is done."""


class RetryIn(msgspec.Struct, frozen=True):
    """Try again after a delay; counts as an attempt."""

    delay: timedelta


class Fail(msgspec.Struct, frozen=True):
    """Move the run to the dead letters."""


class Cancel(msgspec.Struct, frozen=True):
    """End the run as cancelled."""


class SnoozeFor(msgspec.Struct, frozen=True):
    """Try again after a delay; does not count as an attempt."""

    delay: timedelta
    wait: str | None = None
    event: str | None = None


class Release(msgspec.Struct, frozen=True):
    """Make the run READY again at once, without counting the attempt."""


class GiveBackCrashed(msgspec.Struct, frozen=True):
    """Make the run READY again at once, without counting the attempt, and count the loss."""


type Verdict = Succeed | RetryIn | Fail | Cancel | SnoozeFor | Release | GiveBackCrashed

SUCCEED = Succeed()
FAIL = Fail()


def judge(run: Leased, outcome: Outcome) -> Verdict:  # noqa: PLR0911 -- one return per case of the table.
    """Returns the verdict on an outcome; the same run and outcome always get the same verdict."""
    match outcome:
        case Succeeded():
            return SUCCEED
        case Failed(final=True):
            return FAIL
        case Failed(after=after):
            return _again(run, after)
        case Snoozed(after=after, wait=wait, event=event):
            return SnoozeFor(after, wait, event)
        case Cancelled():
            return Cancel()
        case Released():
            return Release()
        case Crashed():
            return FAIL if run.losses + 1 >= LOSSES_MAX else GiveBackCrashed()
        case _:
            assert_never(outcome)


def _again(run: Leased, asked: timedelta | None) -> Verdict:
    tried = run.charged + 1
    if tried >= run.max_attempts:
        return FAIL
    policy = retry_of(run)
    # A delay that the task asked for (such as a Retry-After) is used as it is; only the policy's
    # is jittered.
    delay = policy.delay_before(tried + 1, run.spec_hash) if asked is None else asked
    if policy.age_max is not None and run.age + delay > policy.age_max:
        return FAIL
    return RetryIn(delay)


def ends_if_failed(run: Leased) -> bool:
    """Returns whether the run ends if its attempt fails and requests no delay."""
    if run.charged + 1 >= run.max_attempts:
        return True
    # Only a maximum age needs the policy, which takes longer to decode than to search.
    limited = run.retry_json is not None and '"age_max"' in run.retry_json
    return limited and _again(run, None) == FAIL


def retry_of(run: Leased) -> Retry:
    """Returns the retry policy that a run was enqueued with; the default if it is not readable.

    An error here would stop every worker that executes the run, one after the other.
    """
    if run.retry_json is None:
        return Retry(attempts=run.max_attempts)
    try:
        return msgspec.json.decode(run.retry_json, type=Retry)
    except (msgspec.DecodeError, BadOption, ValueError, OverflowError):
        return Retry()
