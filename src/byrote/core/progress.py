# SPDX-License-Identifier: MIT
"""How far a run has come: what a task may say of it, and what others are told."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from byrote.core.errors import BadOption, BadPayload
from byrote.core.json.codec import pack
from byrote.core.outcome import safe_text
from byrote.core.state import FINAL, Status

MESSAGE_MAX: Final = 500
"""Characters of a message."""
DATA_MAX: Final = 4_096
"""Bytes of JSON of what is told beside it."""
COUNT_MAX: Final = 1e15
DIGITS: Final = 6
"""Digits after the point that are kept of a count."""
LEFT_MAX: Final = timedelta(days=3_650)
"""An estimate beyond this says nothing."""


class ProgressReport(msgspec.Struct, frozen=True):
    """What a task has said of how far it is; sound."""

    percent: float
    done: float | None
    """So many of `total`; None when per cent were given."""
    total: float | None
    message: str
    data: str | None
    """A JSON object as text."""


class Progress(msgspec.Struct, frozen=True):
    """How far a run has come, as the attempt that told it last saw it."""

    attempt: int
    """Which attempt told it."""
    percent: float
    """0 to 100."""
    done: float | None
    total: float | None
    message: str
    data: dict[str, Any]
    at: datetime
    """When it was told."""
    eta: datetime | None
    """When it will be done if it goes on at its pace: an estimate; None while there is none."""
    retrying: bool
    """The attempt that told it has failed: the next begins at 0, and has said nothing yet."""


def report_of(
    done: object, total: object = None, message: object = "", data: object = None
) -> ProgressReport:
    """What a task says of its progress; BadOption says what it may say instead."""
    if not isinstance(message, str) or len(message) > MESSAGE_MAX:
        raise BadOption(f"A message of progress is a text of up to {MESSAGE_MAX} characters.")
    said = safe_text(message, MESSAGE_MAX * 10)[:MESSAGE_MAX], _packed(data)
    if total is None:
        percent = _number(done)
        if not 0 <= percent <= 100:
            raise BadOption(f"Progress without a total is in per cent, 0 to 100, not {done!r:.40}.")
        return ProgressReport(round(percent, DIGITS), None, None, *said)
    many, of = round(_number(done), DIGITS), round(_number(total), DIGITS)
    if not 0 <= many <= of <= COUNT_MAX:
        raise BadOption(
            f"Progress is so many of a total of up to {COUNT_MAX:g}, "
            f"not {done!r:.40} of {total!r:.40}."
        )
    # Nothing of nothing is all of it.
    percent = round(many / of * 100, DIGITS) if of else 100.0
    return ProgressReport(percent, many, of, *said)


def _number(value: object) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, str | bytes) or not math.isfinite(number):
        raise BadOption(f"Progress is told in numbers, not {value!r:.40}.")
    return number


def _packed(data: object) -> str | None:
    if data is None or data == {}:
        return None
    if not isinstance(data, dict):
        raise BadOption("What is told beside a progress is a JSON object.")
    try:
        return pack(data, limit=DATA_MAX).text
    except BadPayload as error:
        raise BadOption(f"What is told beside a progress is small JSON. {error}") from None


class Reported(msgspec.Struct, frozen=True):
    """The last report of a run as it is stored, and the first one its pace is measured from."""

    attempt: int
    percent: float
    done: float | None
    total: float | None
    message: str
    data: str | None
    at: datetime
    began_at: datetime
    began_percent: float


def progress_of(told: Reported, status: Status, faults: Sequence[Mapping[str, Any]]) -> Progress:
    """A stored report as others are told of it, given where its run stands now."""
    failed = any(fault.get("attempt", 0) >= told.attempt for fault in faults)
    retrying = failed and status not in FINAL
    return Progress(
        attempt=told.attempt,
        percent=0.0 if retrying else told.percent,
        done=None if retrying else told.done,
        total=told.total,
        message="" if retrying else told.message,
        data={} if retrying or told.data is None else msgspec.json.decode(told.data),
        at=told.at,
        eta=_eta(told) if status is Status.RUNNING and not retrying else None,
        retrying=retrying,
    )


def _eta(told: Reported) -> datetime | None:
    gained, took = told.percent - told.began_percent, told.at - told.began_at
    if gained <= 0 or took <= timedelta():
        return None
    left = took.total_seconds() * (100 - told.percent) / gained
    return told.at + timedelta(seconds=left) if left <= LEFT_MAX.total_seconds() else None


def spoken(progress: Progress) -> str:
    """A progress in words: `42 % (420 of 1,000), importing`."""
    if progress.retrying:
        return f"0 %, retrying: attempt {progress.attempt} failed"
    # Rounded down: 99.96 is not all of it.
    said = f"{math.floor(progress.percent * 10) / 10:g} %"
    if progress.done is not None and progress.total is not None:
        said += f" ({progress.done:,.15g} of {progress.total:,.15g})"
    return f"{said}, {progress.message}" if progress.message else said
