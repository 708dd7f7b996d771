# SPDX-License-Identifier: MIT
"""Every verb of a client: one function each, which returns a request. The clients run them."""

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from itertools import batched
from typing import Any, Unpack
from urllib.parse import quote

import msgspec

from byrote.core.duration import DurationLike, duration
from byrote.core.errors import BadOption, ResultTimeout, RunFailed
from byrote.core.json.codec import pack, unpack
from byrote.core.policy import Retry
from byrote.core.ports.replies import DoneRuns
from byrote.core.run import Run
from byrote.core.state import Status
from byrote.sdk.calls.bulk import since_text
from byrote.sdk.calls.options import How
from byrote.sdk.calls.replies import RunRead, missing, text_of
from byrote.sdk.transport.request import CallScript, Program, ServiceCall, Terms
from byrote.wire.messages import (
    Accepted,
    AcceptedRuns,
    Deleted,
    EventsReply,
    EventView,
    Moved,
    MovedRuns,
    NewRun,
    QueuePatience,
    QueuesReply,
    QueueState,
    QueueView,
    RetryPolicy,
    RunBrief,
    RunPage,
    StatsReply,
    Whoami,
    WorkersReply,
    WorkerView,
)
from byrote.wire.progress import RunProgress, progress_of
from byrote.wire.terms import BATCH_MAX, PAGE

WAIT_S = 20.0
"""How long one request waits for a run; a longer wait takes several requests."""
ABSENT: Any = object()
BODY_MAX = 512 * 1024
"""Bytes of specs after which a batch is full."""

_encode = msgspec.json.encode


_VALUES = ("payload", "args", "kwargs")


def new_run(task: str, payload: Any = ABSENT, **how: Unpack[How]) -> NewRun:
    """Describe a piece of work without sending it: one payload, or args and kwargs."""
    given: dict[str, Any] = {"task": task, **how}
    if payload is not ABSENT:
        if "args" in given or "kwargs" in given:
            raise BadOption("Give a payload, or args and kwargs, not both.")
        given["payload"] = payload
    for name in _VALUES:
        if name in given:
            given[name] = msgspec.Raw(pack(given[name]).text.encode())
    given["run_after"] = _moment(given.get("run_after"))
    if given.get("timeout") is not None:
        given["timeout"] = duration(given["timeout"]).total_seconds()
    if given.get("retry") is not None:
        given["retry"] = _policy(given["retry"])
    given["traceparent"] = given.get("traceparent") or current_traceparent()
    try:
        return NewRun(**given)
    except TypeError as error:
        raise BadOption(f"enqueue: {error}.") from None


def _moment(when: datetime | DurationLike | None) -> str | float | None:
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise BadOption("run_after has no time zone; send an aware datetime or a delay.")
        return when.isoformat()
    return None if when is None else duration(when).total_seconds()


def _policy(retry: Retry) -> RetryPolicy:
    fields = msgspec.structs.asdict(retry)
    for name in ("delay_first", "delay_max", "age_max"):
        if fields[name] is not None:
            fields[name] = fields[name].total_seconds()
    return RetryPolicy(**fields)


def current_traceparent() -> str | None:
    """The caller's span, if OpenTelemetry is installed."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    carrier: dict[str, str] = {}
    import_module("opentelemetry.propagate").inject(carrier)
    return carrier.get("traceparent")


# -- Runs ----------------------------------------------------------------------------------------


def enqueue(
    task: str, payload: Any = ABSENT, *, key: str | None = None, **how: Unpack[How]
) -> ServiceCall[Accepted]:
    """Enqueue a run of a task; with a `key` of the caller, once for all calls with that key."""
    body = _encode(new_run(task, payload, **how))
    return ServiceCall("POST", "/v1/runs", _reader(Accepted), body=body, keyed=True, key=key)


def enqueue_many(runs: Iterable[NewRun], *, key: str | None = None) -> Program[list[Accepted]]:
    """Enqueue many runs; all or none of each thousand, or of half a megabyte of them."""

    def script(terms: Terms) -> CallScript[list[Accepted]]:
        accepted: list[Accepted] = []
        for number, batch in enumerate(_bodies(runs)):
            body = b"[" + b",".join(batch) + b"]"
            own = None if key is None else f"{key}.{number}"
            read = _reader(AcceptedRuns)
            sent = yield from ServiceCall("POST", "/v1/runs", read, body=body, keyed=True, key=own)(
                terms
            )
            accepted += sent.runs
        return accepted

    return script


def _bodies(runs: Iterable[NewRun]) -> Iterable[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for run in runs:
        encoded = _encode(run)
        if batch and (len(batch) == BATCH_MAX or size + len(encoded) > BODY_MAX):
            yield batch
            batch, size = [], 0
        batch.append(encoded)
        size += len(encoded) + 1
    if batch:
        yield batch


def get(run_id: str) -> ServiceCall[Run]:
    """The run as it is now; raises RunNotFound."""
    return _run(run_id, 0.0, read_run)


def _run[T](run_id: str, wait_s: float, read: Callable[[bytes], T]) -> ServiceCall[T]:
    query = {"wait": f"{wait_s:.3f}s"} if wait_s > 0 else {}
    path = f"/v1/runs/{_part(run_id)}"
    return ServiceCall("GET", path, read, query=query, wait_s=wait_s, otherwise=missing(run_id))


def _with_reason(body: bytes) -> tuple[Run, str]:
    """A run, and why it is not executed; empty if it is, or was."""
    run = read_run(body)
    return run, "" if run.finished else _view(body).why or ""


def wait(run_id: str, timeout: DurationLike | None = None) -> Program[Run]:
    """The run, once it has ended; raises ResultTimeout if that takes too long."""

    def script(terms: Terms) -> CallScript[Run]:
        patience = None if timeout is None else duration(timeout).total_seconds()
        deadline = None if patience is None else terms.clock() + patience
        while True:
            left = WAIT_S if deadline is None else deadline - terms.clock()
            wait_s = min(max(left, 0.0), WAIT_S)
            read: tuple[Run, str] = yield from _run(run_id, wait_s, _with_reason)(terms)
            run, why = read
            if run.finished:
                return run
            if deadline is not None and terms.clock() >= deadline:
                late = f"Run {run_id} is still {run.status} after {patience:g} s."
                raise ResultTimeout(f"{late} {why}".strip())

    return script


def result(run_id: str, timeout: DurationLike | None = None) -> Program[Any]:
    """Return the task's result; raises RunFailed, or ResultTimeout if that takes too long."""

    def script(terms: Terms) -> CallScript[Any]:
        run = yield from wait(run_id, timeout)(terms)
        if run.status is not Status.SUCCESSFUL:
            raise RunFailed(run_id, run.status, run.faults)
        return None if run.result_json is None else unpack(run.result_json)

    return script


def runs(
    *,
    status: str | None = None,
    queue: str | None = None,
    task: str | None = None,
    spec_hash: str | None = None,
    label: tuple[str, str] | None = None,
    since: datetime | DurationLike | None = None,
    limit: int = PAGE,
    cursor: str | None = None,
) -> ServiceCall[RunPage]:
    """A page of runs, newest first; `next` of the answer is the cursor of the next page.

    `since` is a moment or an age such as `"1h"`: runs that ended since then or, if they have not
    ended, were enqueued.
    """
    asked = {"status": status, "queue": queue, "task": task, "hash": spec_hash, "cursor": cursor}
    query = {name: value for name, value in asked.items() if value is not None}
    if label is not None:
        query["label"] = "=".join(label)
    if since is not None:
        query["since"] = since_text(since)
    return ServiceCall("GET", "/v1/runs", _reader(RunPage), query=query | {"limit": str(limit)})


def cancel(run_id: str) -> ServiceCall[bool]:
    """Cancel the run; returns False if it had already finished."""
    return _move(run_id, "cancel", repeat=True)


def retry(run_id: str) -> ServiceCall[bool]:
    """Make a dead or waiting run ready now; returns False if it was neither."""
    return _move(run_id, "retry", repeat=False)


def _move(run_id: str, verb: str, *, repeat: bool) -> ServiceCall[bool]:
    otherwise = {**missing(run_id), "conflict": lambda _refused: False}
    path = f"/v1/runs/{_part(run_id)}/{verb}"
    return ServiceCall("POST", path, lambda _body: True, repeat=repeat, otherwise=otherwise)


def replay(run_id: str, *, key: str | None = None) -> ServiceCall[Accepted]:
    """Enqueue an earlier run's spec again, as a new run."""
    path = f"/v1/runs/{_part(run_id)}/replay"
    read, unknown = _reader(Accepted), missing(run_id)
    return ServiceCall("POST", path, read, keyed=True, key=key, otherwise=unknown)


def signal(run_id: str, event: str, payload: Any = None) -> ServiceCall[bool]:
    """Send a run a signal it waits for now or later; returns False if the run has ended."""
    text = msgspec.Raw(pack(payload).text.encode())
    otherwise = {**missing(run_id), "conflict": lambda _refused: False}
    return ServiceCall(
        "POST",
        f"/v1/runs/{_part(run_id)}/signal",
        lambda _body: True,
        body=_encode({"event": event, "payload": text}),
        repeat=False,
        otherwise=otherwise,
    )


def cancel_many(ids: Sequence[str]) -> Program[DoneRuns[Moved]]:
    """Cancel runs; returns those that had not ended, with their status."""
    return _move_many("/v1/runs/cancel", ids, repeat=True)


def retry_many(ids: Sequence[str]) -> Program[DoneRuns[Moved]]:
    """Make dead or waiting runs ready now; returns those."""
    return _move_many("/v1/runs/retry", ids, repeat=False)


def _move_many(path: str, ids: Sequence[str], *, repeat: bool) -> Program[DoneRuns[Moved]]:
    def script(terms: Terms) -> CallScript[DoneRuns[Moved]]:
        done: DoneRuns[Moved] = DoneRuns()
        for batch in batched(ids, BATCH_MAX):
            body, read = _encode({"runs": batch}), _reader(MovedRuns)
            reply = yield from ServiceCall("POST", path, read, body=body, repeat=repeat)(terms)
            done.add(reply.runs, reply.locked or ())
        return done

    return script


def events(run_id: str) -> ServiceCall[list[EventView]]:
    """Return the events of a run, oldest first."""
    path, read = f"/v1/runs/{_part(run_id)}/events", _reader(EventsReply)
    return ServiceCall("GET", path, lambda body: read(body).events, otherwise=missing(run_id))


def progress(run_id: str) -> ServiceCall[RunProgress]:
    """The status of a run and its progress, by its last report."""
    path = f"/v1/runs/{_part(run_id)}/progress"
    return ServiceCall("GET", path, _reader(RunProgress), otherwise=missing(run_id))


# -- Dead letters, queues, workers ---------------------------------------------------------------


def dead(
    *,
    queue: str | None = None,
    task: str | None = None,
    limit: int = PAGE,
    cursor: str | None = None,
) -> ServiceCall[RunPage]:
    """A page of dead letters, newest first."""
    asked = {"queue": queue, "task": task, "cursor": cursor}
    query = {name: value for name, value in asked.items() if value is not None}
    return ServiceCall("GET", "/v1/dead", _reader(RunPage), query=query | {"limit": str(limit)})


def requeue(ids: Sequence[str]) -> Program[DoneRuns[Moved]]:
    """Bring dead letters back; returns those that were dead."""
    return _move_many("/v1/dead/requeue", ids, repeat=False)


def delete(ids: Sequence[str]) -> ServiceCall[DoneRuns[str]]:
    """Delete dead letters for good; returns those that were dead."""

    def read(body: bytes) -> DoneRuns[str]:
        reply = _reader(Deleted)(body)
        return DoneRuns[str]().add(reply.runs, reply.locked or ())

    return ServiceCall("POST", "/v1/dead/delete", read, body=_encode({"runs": ids}))


def queues() -> ServiceCall[list[QueueView]]:
    """Every queue with its counts of runs."""
    read = _reader(QueuesReply)
    return ServiceCall("GET", "/v1/queues", lambda body: read(body).queues)


def pause(queue: str) -> ServiceCall[QueueState]:
    """Stop claims from a queue."""
    return ServiceCall("POST", f"/v1/queues/{_part(queue)}/pause", _reader(QueueState))


def resume(queue: str) -> ServiceCall[QueueState]:
    """Allow claims from a queue again."""
    return ServiceCall("POST", f"/v1/queues/{_part(queue)}/resume", _reader(QueueState))


def unserved(queue: str, after: str) -> ServiceCall[QueuePatience]:
    """Set how long ready runs wait for a worker that knows their task: `2h`, or `never`."""
    path, body = f"/v1/queues/{_part(queue)}/unserved", _encode({"after": after})
    return ServiceCall("POST", path, _reader(QueuePatience), body=body)


def stats(*, window: str = "5m") -> ServiceCall[StatsReply]:
    """Queues now, and tasks over a window."""
    return ServiceCall("GET", "/v1/stats", _reader(StatsReply), query={"window": window})


def workers() -> ServiceCall[list[WorkerView]]:
    """Workers in the registry."""
    read = _reader(WorkersReply)
    return ServiceCall("GET", "/v1/workers", lambda body: read(body).workers)


def whoami() -> ServiceCall[Whoami]:
    """Return the rights of the token."""
    return ServiceCall("GET", "/v1/whoami", _reader(Whoami))


def _reader[T](cls: type[T]) -> Any:
    return msgspec.json.Decoder(cls).decode


def _part(name: str) -> str:
    return quote(name, safe="")


_BRIEF = tuple(name for name in RunBrief.__struct_fields__ if name not in {"timeout_s", "errors"})
_view = msgspec.json.Decoder(RunRead).decode


def read_run(body: bytes) -> Run:
    """A run as the Python API returns it."""
    view = _view(body)
    fields = {name: getattr(view, name) for name in _BRIEF}
    result = text_of(view.result)
    return Run(
        **fields,
        timeout=None if view.timeout_s is None else timedelta(seconds=view.timeout_s),
        faults=view.errors,
        spec_json=bytes(view.spec).decode(),
        # A run that succeeded has a result, and null is one.
        result_json="null" if result is None and view.status is Status.SUCCESSFUL else result,
        retry_json=text_of(view.retry),
        provenance=view.provenance,
        usage=view.usage,
        shadow=False,
        memo_of=view.memo_of,
        unique_key=view.unique_key,
        progress=progress_of(view.progress),
    )
