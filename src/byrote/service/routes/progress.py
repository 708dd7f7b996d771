# SPDX-License-Identifier: MIT
"""Routes of progress: workers report it, clients read it.

A report is not audited, as a renewal is not: operators do not need to look it up later. It does not
change the run's status, so it is not an event either.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from byrote.core.errors import BadOption
from byrote.core.progress import report_of
from byrote.core.run import Run
from byrote.service.http.decoding import check_once
from byrote.service.http.request import RequestContext, found_run
from byrote.store import locks, queries
from byrote.wire import progress as wire
from byrote.wire.problems import FieldError, Invalid


async def show_progress(call: RequestContext) -> wire.RunProgress:
    """The progress of a run, as its task reported it last."""
    return run_progress_of(await found_run(call))


def run_progress_of(run: Run) -> wire.RunProgress:
    """The status of a run and its progress."""
    return wire.RunProgress(
        run=run.id,
        status=run.status,
        wait_reason=run.wait_reason,
        attempts=run.attempts,
        progress=wire.view_of(run.progress),
    )


async def report(call: RequestContext) -> wire.ReportReply:
    """Store the progress of attempts; only reports of lease holders are accepted."""
    sent: Sequence[wire.LeaseReport] = call.body.reports
    rows = await call.aside(
        lambda: [_row(item, item.token, f"$.reports[{index}]") for index, item in enumerate(sent)]
    )
    return await _write(call, rows)


async def report_one(call: RequestContext) -> wire.ReportReply:
    """Store the progress of one attempt, under the token of its claim."""
    row = await call.aside(lambda: _row(call.body, call.path["token"], "$"))
    return await _write(call, [row])


def _row(item: wire.Report, token: str, path: str) -> dict[str, Any]:
    try:
        data = {} if item.data is msgspec.UNSET else msgspec.json.decode(item.data)
        stated = report_of(item.done, item.total, item.message, data)
    except (BadOption, RecursionError) as error:
        why = str(error) if isinstance(error, BadOption) else "data is nested too deep."
        raise Invalid(f"{path}: {why}", errors=(FieldError(path, why),)) from None
    return {**msgspec.structs.asdict(stated), "id": item.run, "token": token}


async def _write(call: RequestContext, rows: Sequence[dict[str, Any]]) -> wire.ReportReply:
    check_once((row["id"] for row in rows), "$.reports", "The run")
    mine = set(await call.mine([row["id"] for row in rows]))
    own = [row for row in rows if row["id"] in mine]
    accepted = set(await call.service.work.all(queries.progress(own))) if own else set()
    missing = [row for row in own if row["id"] not in accepted]
    locked = set(await call.service.work.all(locks.holding(missing))) if missing else set()
    return wire.ReportReply(
        accepted=[row["id"] for row in rows if row["id"] in accepted],
        lost=[row["id"] for row in rows if row["id"] not in accepted | locked],
        locked=[row["id"] for row in rows if row["id"] in locked] or msgspec.UNSET,
    )
