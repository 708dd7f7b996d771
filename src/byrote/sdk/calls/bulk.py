# SPDX-License-Identifier: MIT
"""Verbs of a client that change all runs that match filters, or a queue's retention.

The service changes one batch per request; a script sends requests until no runs remain.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import msgspec

from byrote.core.duration import DurationLike, duration
from byrote.core.errors import BadOption
from byrote.core.ports.replies import DoneRuns
from byrote.sdk.transport.request import CallScript, Program, ServiceCall, Terms
from byrote.wire.bulk import MatchedRuns, QueueKeeps
from byrote.wire.messages import Moved

_encode = msgspec.json.encode
_matched = msgspec.json.Decoder(MatchedRuns).decode
_keeps = msgspec.json.Decoder(QueueKeeps).decode


def cancel_runs(
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    since: datetime | DurationLike | None = None,
) -> Program[DoneRuns[Moved]]:
    """Cancel the unfinished runs that match; returns those, with their status now.

    Running ones are asked to stop. `since` is a moment or an age such as `"1h"`: runs that were
    enqueued since then.
    """
    filters = _filters(status, queue, task, spec_hash, labels, since)
    return _all_batches("/v1/runs/cancel", filters, repeat=True)


def retry_runs(
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    labels: Mapping[str, str] | None = None,
    since: datetime | DurationLike | None = None,
) -> Program[DoneRuns[Moved]]:
    """Retry the dead letters that match, with a fresh budget; returns those.

    With `status="waiting"`, waiting runs become ready instead. `since` is a moment or an age such
    as `"1h"`: runs that failed since then, or waiting runs that were enqueued since then.
    """
    filters = _filters(status, queue, task, spec_hash, labels, since)
    return _all_batches("/v1/runs/retry", filters, repeat=False)


def purge(queue: str) -> Program[DoneRuns[Moved]]:
    """Cancel the waiting and ready runs of a queue; returns those. Running attempts continue."""
    return _all_batches(f"/v1/queues/{quote(queue, safe='')}/purge", {}, repeat=True)


def set_retention(
    queue: str,
    *,
    keep_done: DurationLike | None = None,
    keep_dead: DurationLike | None = None,
) -> ServiceCall[QueueKeeps]:
    """Set how long a queue keeps ended runs and dead letters; None leaves a setting unchanged.

    Returns both. Ended runs are kept for a day at least.
    """
    given = {"keep_done": keep_done, "keep_dead": keep_dead}
    body = {name: _seconds(name, time) for name, time in given.items() if time is not None}
    path = f"/v1/queues/{quote(queue, safe='')}/retention"
    return ServiceCall("POST", path, _keeps, body=_encode(body))


def _seconds(name: str, time: DurationLike) -> float:
    try:
        return duration(time).total_seconds()
    except ValueError as error:
        raise BadOption(f"{name}: {error}") from None


def since_text(since: datetime | DurationLike) -> str:
    """Return a moment or an age as the service reads it; raises BadOption."""
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise BadOption(f"since: {since!r} has no time zone; add one, such as UTC.")
        return since.isoformat()
    micros = round(_seconds("since", since) * 1_000_000)
    return str(timedelta(microseconds=micros).total_seconds()) + "s"


def _filters(  # noqa: PLR0917 -- one parameter per filter.
    status: str | None,
    queue: str | None,
    task: str | None,
    spec_hash: str | None,
    labels: Mapping[str, str] | None,
    since: datetime | DurationLike | None,
) -> dict[str, Any]:
    given = {
        "status": None if status is None else status.upper(),
        "queue": queue,
        "task": task,
        "hash": spec_hash,
        "labels": None if labels is None else dict(labels),
        "since": None if since is None else since_text(since),
    }
    return {name: value for name, value in given.items() if value}


def _all_batches(path: str, body: dict[str, Any], *, repeat: bool) -> Program[DoneRuns[Moved]]:
    def script(terms: Terms) -> CallScript[DoneRuns[Moved]]:
        done: DoneRuns[Moved] = DoneRuns()
        cursor: dict[str, str] = {}
        while True:
            sent = _encode(body | cursor)
            call = ServiceCall("POST", path, _matched, body=sent, repeat=repeat)
            reply = yield from call(terms)
            done.add(reply.runs, reply.locked or ())
            if reply.next is None:
                return done
            cursor = {"cursor": reply.next}

    return script
