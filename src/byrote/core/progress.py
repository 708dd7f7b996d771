# SPDX-License-Identifier: MIT
"""Progress of a run: the reports of its task, and the view for readers."""

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
"""Bytes of JSON of the `data` of a report."""
COUNT_MAX: Final = 1e15
DIGITS: Final = 6
"""Digits after the decimal point that are stored."""
LEFT_MAX: Final = timedelta(days=3_650)
"""A longer estimate is not reported."""


class ProgressReport(msgspec.Struct, frozen=True):
    """A valid report of a task on its progress."""

    percent: float
    done: float | None
    """Units of `total` that are done; None if the report is in per cent."""
    total: float | None
    message: str
    data: str | None
    """A JSON object as text."""


class Progress(msgspec.Struct, frozen=True):
    """The progress of a run, by its last report."""

    attempt: int
    """The attempt that reported it."""
    percent: float
    """0 to 100."""
    done: float | None
    total: float | None
    message: str
    data: dict[str, Any]
    at: datetime
    """When it was reported."""
    eta: datetime | None
    """Estimate of when it will be done at its pace so far; None without an estimate."""
    retrying: bool
    """The attempt that reported it has failed; the next starts at 0 and has not reported yet."""


def report_of(
    done: object, total: object = None, message: object = "", data: object = None
) -> ProgressReport:
    """Returns a valid report. Raises BadOption with the accepted form otherwise."""
    if not isinstance(message, str) or len(message) > MESSAGE_MAX:
        raise BadOption(f"A progress message is a string of up to {MESSAGE_MAX} characters.")
    details = safe_text(message, MESSAGE_MAX * 10)[:MESSAGE_MAX], _packed(data)
    if total is None:
        percent = _number(done)
        if not 0 <= percent <= 100:
            raise BadOption(f"Progress without a total is in per cent, 0 to 100, not {done!r:.40}.")
        return ProgressReport(round(percent, DIGITS), None, None, *details)
    many, of = round(_number(done), DIGITS), round(_number(total), DIGITS)
    if not 0 <= many <= of <= COUNT_MAX:
        raise BadOption(
            f"Progress is a number from 0 to the total, which is at most {COUNT_MAX:g}, "
            f"not {done!r:.40} of {total!r:.40}."
        )
    # 0 of 0 is complete.
    percent = round(many / of * 100, DIGITS) if of else 100.0
    return ProgressReport(percent, many, of, *details)


def _number(value: object) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, str | bytes) or not math.isfinite(number):
        raise BadOption(f"Progress is in finite numbers, not {value!r:.40}.")
    return number


def _packed(data: object) -> str | None:
    if data is None or data == {}:
        return None
    if not isinstance(data, dict):
        raise BadOption(f"The data of a progress report is a JSON object, not {data!r:.40}.")
    try:
        return pack(data, limit=DATA_MAX).text
    except BadPayload as error:
        raise BadOption(f"The data of a progress report is small JSON. {error}") from None


class Reported(msgspec.Struct, frozen=True):
    """The last stored report of a run, and the first one that its pace is measured from."""

    attempt: int
    percent: float
    done: float | None
    total: float | None
    message: str
    data: str | None
    at: datetime
    began_at: datetime
    began_percent: float


def progress_of(report: Reported, status: Status, faults: Sequence[Mapping[str, Any]]) -> Progress:
    """Returns a stored report as the run's progress, given its status and faults."""
    failed = any(fault.get("attempt", 0) >= report.attempt for fault in faults)
    retrying = failed and status not in FINAL
    return Progress(
        attempt=report.attempt,
        percent=0.0 if retrying else report.percent,
        done=None if retrying else report.done,
        total=report.total,
        message="" if retrying else report.message,
        data={} if retrying or report.data is None else msgspec.json.decode(report.data),
        at=report.at,
        eta=_eta(report) if status is Status.RUNNING and not retrying else None,
        retrying=retrying,
    )


def _eta(report: Reported) -> datetime | None:
    gained, took = report.percent - report.began_percent, report.at - report.began_at
    if gained <= 0 or took <= timedelta():
        return None
    left = took.total_seconds() * (100 - report.percent) / gained
    return report.at + timedelta(seconds=left) if left <= LEFT_MAX.total_seconds() else None


def spoken(progress: Progress) -> str:
    """Returns a progress as text: `42 % (420 of 1,000), importing`."""
    if progress.retrying:
        return f"0 %, retrying: attempt {progress.attempt} failed"
    # Rounded down: 99.96 is not complete.
    text = f"{math.floor(progress.percent * 10) / 10:g} %"
    if progress.done is not None and progress.total is not None:
        text += f" ({progress.done:,.15g} of {progress.total:,.15g})"
    return f"{text}, {progress.message}" if progress.message else text
