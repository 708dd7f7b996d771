# SPDX-License-Identifier: MIT
"""Converts rows of the store into messages of the wire."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from byrote.core.run import Run
from byrote.core.state import Status
from byrote.store.locks import Moves
from byrote.store.rows import QueueRow
from byrote.wire import messages, progress


def brief_of(run: Run) -> messages.RunBrief:
    """A run as a list shows it."""
    return messages.RunBrief(**_common(run))


def view_of(run: Run, *, why: str | None = None) -> messages.RunView:
    """A run with all its fields; `why` is the reason why it is not executed."""
    return messages.RunView(
        **_common(run),
        spec=Raw(run.spec_json.encode()),
        result=None if run.result_json is None else Raw(run.result_json.encode()),
        retry=None if run.retry_json is None else Raw(run.retry_json.encode()),
        provenance=run.provenance,
        usage=run.usage,
        memo_of=run.memo_of,
        unique_key=run.unique_key,
        progress=progress.view_of(run.progress),
        why=why,
    )


_SHARED = tuple(
    name for name in messages.RunBrief.__struct_fields__ if name not in {"timeout_s", "errors"}
)


def _common(run: Run) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(run, name) for name in _SHARED}
    timeout_s = None if run.timeout is None else run.timeout.total_seconds()
    return {**fields, "errors": run.faults, "timeout_s": timeout_s}


def revived(moves: Moves[str]) -> messages.MovedRuns:
    """The reply about runs that were requeued or made ready."""
    runs = [messages.Moved(id=run_id, status=Status.READY) for run_id in moves.done]
    return messages.MovedRuns(runs=runs, locked=moves.locked or UNSET)


def queue_view(row: QueueRow, unserved: Sequence[str] = ()) -> messages.QueueView:
    """A queue as the caller may see it."""
    return messages.QueueView(**msgspec.structs.asdict(row), unserved=list(unserved))
