# SPDX-License-Identifier: MIT
"""Routes of progress: workers tell how far they are, others see it.

A report is no change that anybody would ask about later, so it leaves no entry in the audit, as a
renewal does not; it says nothing of the run's status, so it is no event either.
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
    """How far a run has come, as its task told last."""
    return run_progress_of(await found_run(call))


def run_progress_of(run: Run) -> wire.RunProgress:
    """Where a run stands, and how far it has come."""
    return wire.RunProgress(
        run=run.id,
        status=run.status,
        wait_reason=run.wait_reason,
        attempts=run.attempts,
        progress=wire.view_of(run.progress),
    )


async def report(call: RequestContext) -> wire.ReportReply:
    """Tell how far attempts have come; only the holders of their leases are heard."""
    sent: Sequence[wire.LeaseReport] = call.body.reports
    rows = await call.aside(
        lambda: [_row(item, item.token, f"$.reports[{place}]") for place, item in enumerate(sent)]
    )
    return await _write(call, rows)


async def report_one(call: RequestContext) -> wire.ReportReply:
    """Tell how far one attempt has come, under the token of its claim."""
    row = await call.aside(lambda: _row(call.body, call.path["token"], "$"))
    return await _write(call, [row])


def _row(item: wire.Report, token: str, path: str) -> dict[str, Any]:
    try:
        data = {} if item.data is msgspec.UNSET else msgspec.json.decode(item.data)
        said = report_of(item.done, item.total, item.message, data)
    except (BadOption, RecursionError) as error:
        why = str(error) if isinstance(error, BadOption) else "data is nested too deep."
        raise Invalid(f"{path}: {why}", errors=(FieldError(path, why),)) from None
    return {**msgspec.structs.asdict(said), "id": item.run, "token": token}


async def _write(call: RequestContext, rows: Sequence[dict[str, Any]]) -> wire.ReportReply:
    check_once((row["id"] for row in rows), "$.reports", "The run")
    mine = set(await call.mine([row["id"] for row in rows]))
    own = [row for row in rows if row["id"] in mine]
    heard = set(await call.service.work.all(queries.progress(own))) if own else set()
    missing = [row for row in own if row["id"] not in heard]
    locked = set(await call.service.work.all(locks.holding(missing))) if missing else set()
    return wire.ReportReply(
        accepted=[row["id"] for row in rows if row["id"] in heard],
        lost=[row["id"] for row in rows if row["id"] not in heard | locked],
        locked=[row["id"] for row in rows if row["id"] in locked] or msgspec.UNSET,
    )
