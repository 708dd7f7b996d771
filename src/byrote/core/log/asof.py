# SPDX-License-Identifier: MIT
"""A run at a past moment: constant fields from its row, the others from the log up to then."""

from datetime import datetime
from typing import Any

import msgspec

from byrote.core.log.fold import RunState, moment
from byrote.core.run import Run
from byrote.core.state import FINAL, Status


def as_it_was(run: Run, then: RunState, at: datetime) -> Run:
    """Returns the run at a moment; `then` is its state by the log up to that moment.

    Fields that the log does not have are taken from the row if they cannot have changed since.
    """
    status = Status(then.status) if then.status is not None else run.status
    ended = then.attempts if status is not Status.RUNNING else then.attempts - 1
    succeeded = status is Status.SUCCESSFUL
    return msgspec.structs.replace(
        run,
        status=status,
        wait_reason=then.wait_reason,
        run_after=then.due or run.run_after,
        attempts=then.attempts,
        charged=then.charged,
        losses=then.losses,
        leased_by=then.leased_by,
        leased_until=then.leased_until,
        cancel_requested_at=then.cancel_requested_at,
        started_at=then.started_at,
        last_attempted_at=then.last_attempted_at,
        finished_at=then.finished_at if status in FINAL else None,
        result_json=run.result_json if succeeded else None,
        result_hash=run.result_hash if succeeded else None,
        faults=[fault for fault in run.faults if _was(fault, at)],
        worker_ids=run.worker_ids[: then.attempts],
        provenance=run.provenance[:ended],
        usage=[usage for usage in run.usage if usage.get("attempt", 0) <= ended],
        # Only the last report is stored; earlier ones are not known.
        progress=run.progress if run.progress is not None and run.progress.at <= at else None,
    )


def _was(fault: dict[str, Any], at: datetime) -> bool:
    happened = moment(fault.get("at"))
    return happened is None or happened <= at
