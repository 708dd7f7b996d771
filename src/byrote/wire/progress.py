# SPDX-License-Identifier: MIT
"""Progress of runs: reports of workers to the service, and its replies to readers."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from byrote.core.progress import COUNT_MAX, MESSAGE_MAX, Progress
from byrote.core.state import Status
from byrote.wire.terms import JSON_OBJECT, Id, Identified, Reply, Request

REPORTS_MAX = 500

type Number = Annotated[float, msgspec.Meta(ge=0, le=COUNT_MAX)]


class Report(Identified, frozen=True, kw_only=True):
    """Progress of one attempt: `done` of `total`, or per cent without a total."""

    run: Id
    done: Number
    total: Number | None = None
    message: Annotated[str, msgspec.Meta(max_length=MESSAGE_MAX)] = ""
    data: Annotated[Raw | UnsetType, msgspec.Meta(extra_json_schema=JSON_OBJECT)] = UNSET
    """An object of up to 4,096 bytes of JSON."""


class LeaseReport(Report, frozen=True, kw_only=True):
    """Progress of one attempt, with the token of its lease."""

    token: Id


class Reports(Request, frozen=True, kw_only=True):
    """Progress of attempts, one report each."""

    reports: Annotated[list[LeaseReport], msgspec.Meta(min_length=1, max_length=REPORTS_MAX)]


class ReportReply(Reply, frozen=True, kw_only=True):
    """Runs whose reports were written, and runs whose leases are lost: stop working on those."""

    accepted: list[str]
    lost: list[str]
    locked: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Neither written nor lost: another transaction has locked the row."""


class ProgressView(Reply, frozen=True, kw_only=True):
    """The progress of a run, by its last report."""

    attempt: int
    percent: float
    done: float | None
    total: float | None
    message: str
    data: dict[str, Any]
    at: datetime
    eta: datetime | None
    """Estimate of when it will be done at its pace so far."""
    retrying: bool
    """The attempt that reported it has failed, and the next one has not reported yet."""


class UnderWayView(Reply, frozen=True, kw_only=True):
    """A running run that reports progress."""

    id: str
    task: str
    queue: str
    progress: ProgressView


class RunProgress(Reply, frozen=True, kw_only=True):
    """The status and the progress of a run."""

    run: str
    status: Status
    wait_reason: str | None
    attempts: int
    progress: ProgressView | None
    """Null while its task has not reported any."""


def view_of(progress: Progress | None) -> ProgressView | None:
    """Returns a progress as a message."""
    return None if progress is None else ProgressView(**msgspec.structs.asdict(progress))


def progress_of(view: ProgressView | None) -> Progress | None:
    """Returns a message as a progress of the core."""
    return None if view is None else Progress(**msgspec.structs.asdict(view))


def under_way_of(run_id: str, task: str, queue: str, progress: Progress) -> UnderWayView:
    """Returns a running run and its progress as a message."""
    view = ProgressView(**msgspec.structs.asdict(progress))
    return UnderWayView(id=run_id, task=task, queue=queue, progress=view)
