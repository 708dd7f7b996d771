# SPDX-License-Identifier: MIT
"""How far runs have come: what workers tell the service, and what it tells others."""

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
    """How far one attempt has come: `done` of `total`, or per cent where there is no total."""

    run: Id
    done: Number
    total: Number | None = None
    message: Annotated[str, msgspec.Meta(max_length=MESSAGE_MAX)] = ""
    data: Annotated[Raw | UnsetType, msgspec.Meta(extra_json_schema=JSON_OBJECT)] = UNSET
    """An object of up to 4,096 bytes of JSON."""


class LeaseReport(Report, frozen=True, kw_only=True):
    """The same, with the token of its lease."""

    token: Id


class Reports(Request, frozen=True, kw_only=True):
    """How far attempts have come, one report each."""

    reports: Annotated[list[LeaseReport], msgspec.Meta(min_length=1, max_length=REPORTS_MAX)]


class ReportReply(Reply, frozen=True, kw_only=True):
    """Runs whose reports were written, and runs that are lost: stop working on them."""

    accepted: list[str]
    lost: list[str]
    locked: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Neither written nor lost: another transaction has locked the row."""


class ProgressView(Reply, frozen=True, kw_only=True):
    """How far a run has come, as the attempt that told it last saw it."""

    attempt: int
    percent: float
    done: float | None
    total: float | None
    message: str
    data: dict[str, Any]
    at: datetime
    eta: datetime | None
    """When it will be done if it goes on at its pace: an estimate."""
    retrying: bool
    """The attempt that told it has failed, and the next one has said nothing yet."""


class UnderWayView(Reply, frozen=True, kw_only=True):
    """A run under way that tells how far it is."""

    run: str
    task: str
    queue: str
    progress: ProgressView


class RunProgress(Reply, frozen=True, kw_only=True):
    """Where a run stands, and how far it has come."""

    run: str
    status: Status
    wait_reason: str | None
    attempts: int
    progress: ProgressView | None
    """Null while its task has told nothing."""


def view_of(progress: Progress | None) -> ProgressView | None:
    """A progress as the wire tells it."""
    return None if progress is None else ProgressView(**msgspec.structs.asdict(progress))


def progress_of(view: ProgressView | None) -> Progress | None:
    """A progress as the core has it."""
    return None if view is None else Progress(**msgspec.structs.asdict(view))


def under_way_of(run: str, task: str, queue: str, progress: Progress) -> UnderWayView:
    """A run under way as the wire tells of it."""
    view = ProgressView(**msgspec.structs.asdict(progress))
    return UnderWayView(run=run, task=task, queue=queue, progress=view)
