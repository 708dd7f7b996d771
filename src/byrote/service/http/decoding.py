# SPDX-License-Identifier: MIT
"""Converts messages of the wire to records of the core, and back."""

import contextlib
from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Raw

from byrote.core.duration import duration
from byrote.core.errors import BadOption, BadPayload
from byrote.core.policy import ONCE, Retry
from byrote.core.run import Leased
from byrote.core.spec import Delivery
from byrote.wire.leases import Lease
from byrote.wire.messages import NewRun, RetryPolicy
from byrote.wire.problems import FieldError, Invalid


def delivery_of(run: NewRun) -> Delivery:
    """When, where and how often to try a run. Raises BadOption or ValueError."""
    return Delivery(
        queue=run.queue,
        priority=run.priority,
        run_after=moment_of(run.run_after),
        timeout=None if run.timeout is None else duration(run.timeout),
        retry=ONCE if run.retry is None else retry_of(run.retry),
        labels=run.labels,
        traceparent=run.traceparent,
        unique_key=run.unique_key,
    )


def moment_of(text: str | float | None) -> datetime | timedelta | None:
    """A moment, or a delay."""
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        return duration(text)
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        raise BadOption(
            "run_after is a delay such as '10m', a number of seconds, or a moment such as "
            "'2030-01-31T09:00Z'."
        ) from None
    if not 1970 <= moment.year <= 9000:
        raise BadOption("run_after is a moment between the years 1970 and 9000.")
    return moment


def retry_of(policy: RetryPolicy) -> Retry:
    """The policy as the core has it."""
    return Retry(
        attempts=policy.attempts,
        backoff=policy.backoff,
        delay_first=duration(policy.delay_first),
        delay_max=duration(policy.delay_max),
        factor=policy.factor,
        jitter=policy.jitter,
        age_max=None if policy.age_max is None else duration(policy.age_max),
    )


def prefixed(error: BadPayload, path: str) -> BadPayload:
    """The same refusal, with its path in the request."""
    return BadPayload(path + error.path.removeprefix("$"), error.reason)


def check_once(keys: Iterable[object], path: str, what: str) -> None:
    """Refuse a request with a duplicate; the error names it and both positions."""
    seen: dict[object, int] = {}
    for index, key in enumerate(keys):
        first = seen.setdefault(key, index)
        if first != index:
            named = key if isinstance(key, str) else ", ".join(map(str, key))  # type: ignore[call-overload]
            why = f"{what} {named} is named twice, here and at {path}[{first}]; send it once."
            raise Invalid(f"{path}[{index}]: {why}", errors=(FieldError(f"{path}[{index}]", why),))


def lease_of(run: Leased) -> Lease:
    """A lease as workers receive it."""
    return Lease(
        run=run.id,
        token=run.token,
        queue=run.queue,
        task=run.task,
        version=run.version,
        spec=Raw(run.spec_json.encode()),
        spec_hash=run.spec_hash.hex(),
        attempt=run.attempt,
        charged=run.charged,
        losses=run.losses,
        max_attempts=run.max_attempts,
        timeout_ms=run.timeout_ms,
        retry=_raw(run.retry_json),
        labels=_raw(run.labels_json),
        traceparent=run.traceparent,
        rank=run.rank,
        age_us=run.age_us,
        as_of_us=run.as_of_us,
    )


def _raw(text: str | None) -> Raw | None:
    return None if text is None else Raw(text.encode())


def plain(text: str | None) -> str | None:
    """A filter that the database accepts."""
    if text is not None and "\x00" in text:
        raise Invalid("A name has no NUL in it.")
    return text


def wait_of(text: str) -> float:
    """Seconds to wait."""
    try:
        return duration(text).total_seconds()
    except ValueError as error:
        raise Invalid(f"wait: {error}") from None


def since_of(text: str | None) -> datetime | timedelta | None:
    """An age, or a moment with its time zone."""
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        return duration(text)
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None and 1970 <= moment.year <= 9000:
            return moment
    raise Invalid(
        "since: write an age such as 1h, or a moment with its time zone, as in 2030-01-31T09:00Z; "
        f"not {text!r}."
    )
