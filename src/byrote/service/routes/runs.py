# SPDX-License-Identifier: MIT
"""Routes of runs: enqueue, read, cancel, retry, replay, signal."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
import psycopg
from msgspec import UNSET, Raw
from starlette.responses import Response

from byrote.core.errors import BadOption, BadPayload, PayloadTooLarge
from byrote.core.json.codec import check_text, digest_of
from byrote.core.log.asof import as_it_was
from byrote.core.log.fold import fold_all
from byrote.core.run import Run
from byrote.core.spec import Delivery, Spec
from byrote.core.state import Status
from byrote.service.http.decoding import delivery_of, plain, prefixed, since_of, wait_of
from byrote.service.http.idempotency import copied, enqueue_each, once
from byrote.service.http.request import RequestContext, found_run, not_here
from byrote.service.views import brief_of, view_of
from byrote.store import queries
from byrote.store.query import Query, Resend
from byrote.wire import messages
from byrote.wire.bulk import Moment
from byrote.wire.problems import Conflict, Invalid
from byrote.wire.terms import PAGE, PAGE_MAX, Digest, Id

# -- Enqueue ---------------------------------------------------------------------------------------


async def enqueue(call: RequestContext) -> messages.Accepted | messages.AcceptedRuns | Response:
    """Accept one run, or a batch: all or none; returns the holders of taken unique keys."""
    one = isinstance(call.body, messages.NewRun)
    asked: Sequence[messages.NewRun] = [call.body] if one else call.body
    call.grant.check({run.queue for run in asked}, {run.task for run in asked})
    specs = await call.aside(lambda: _specs(call, asked, one=one))
    ids = call.service.context.ids(len(specs))
    subject = ",".join(sorted({run.queue for run in asked}))[:200]
    sent = list(zip(ids, specs, strict=True))
    query = queries.accept(sent) if one else await call.aside(lambda: queries.accept(sent))
    if query.resend is Resend.AGAIN:
        reply_type = messages.Accepted if one else messages.AcceptedRuns
        return await enqueue_each(call, sent, query, reply_type=reply_type, subject=subject)
    accepted = [messages.Accepted(id=run_id, spec_hash=spec.digest.hex()) for run_id, spec in sent]
    audit = call.audit("enqueue", ids, subject=subject)
    reply = accepted[0] if one else messages.AcceptedRuns(runs=accepted)
    return await once(call, query, audit, reply)


def _specs(call: RequestContext, asked: Sequence[messages.NewRun], *, one: bool) -> list[Spec]:
    cached: dict[Any, Delivery] = {}
    return [
        _spec(run, call, cached, "$" if one else f"$[{index}]") for index, run in enumerate(asked)
    ]


def _spec(
    run: messages.NewRun, call: RequestContext, cached: dict[Any, Delivery], path: str
) -> Spec:
    limit = call.service.options.payload_limit(run.queue)
    try:
        text = _identity(run)
        digest = digest_of(text) if len(text) <= limit else b""
    except BadPayload as error:
        raise prefixed(error, path) from None
    if not digest:
        raise PayloadTooLarge(len(text), limit)
    labels = None if run.labels is None else tuple(run.labels.items())
    how = (run.queue, run.priority, run.run_after, run.timeout, run.retry)
    key = (*how, labels, run.traceparent, run.unique_key)
    delivery = cached.get(key)
    if delivery is None:
        try:
            delivery = cached[key] = delivery_of(run)
        except (BadOption, ValueError) as error:
            raise Invalid(f"{path}: {error}") from None
    return Spec(run.task, run.version, text.decode(), digest, delivery)


def _identity(run: messages.NewRun) -> bytes:
    """The JSON text of a spec, with the values byte for byte as they were sent."""
    args, kwargs = _part(run.args, b"[]"), _part(run.kwargs, b"{}")
    if run.payload is not UNSET:
        if run.args is not UNSET or run.kwargs is not UNSET:
            raise BadPayload("$", "Send either `payload`, or `args` and `kwargs`.")
        args = b"[" + bytes(run.payload) + b"]"
    if not args.startswith(b"["):
        raise BadPayload("$.args", "Send a list of positional arguments.")
    if not kwargs.startswith(b"{"):
        raise BadPayload("$.kwargs", "Send an object of arguments by name.")
    return b'{"task":"%b","version":%d,"args":%b,"kwargs":%b}' % (
        run.task.encode(),  # A name contains nothing that JSON would escape.
        run.version,
        args,
        kwargs,
    )


def _part(raw: Raw | Any, absent: bytes) -> bytes:
    return absent if raw is UNSET else bytes(raw).strip()


# -- Read ------------------------------------------------------------------------------------------


class WaitQuery(msgspec.Struct, frozen=True):
    """How long to wait for the end, or the past moment to show."""

    wait: Annotated[
        str, msgspec.Meta(max_length=40, description="How long to wait for its end, as in `10s`.")
    ] = "0s"
    at: (
        Annotated[
            str, msgspec.Meta(max_length=40, description="As it was then: RFC 3339 with time zone.")
        ]
        | None
    ) = None


async def show(call: RequestContext) -> messages.RunView:
    """One run with all its fields; with `wait`, once it has ended; or at a past moment."""
    run = await found_run(call)
    if call.query.at is not None:
        return view_of(await _then(call, run, call.query.at))
    seconds = min(wait_of(call.query.wait), call.service.options.wait_max_s)
    if seconds and not run.finished and not call.service.stopping:
        with call.waits():
            await call.service.watch.until_ended(run.id, seconds, call.gone)
        await call.confirm()
        run = await found_run(call)
    return view_of(run, why=await _why(call, run))


async def _why(call: RequestContext, run: Run) -> str | None:
    """Why a READY or WAITING run is not executed; one statement, only for those."""
    if run.status not in (Status.READY, Status.WAITING):
        return None
    stands = await call.service.reads.all(queries.why_waiting(run.id))
    if call.grant.limited:
        # The nearest known task may belong to others.
        stands = [msgspec.structs.replace(one, tasks=[]) for one in stands]
    return "".join(one.why for one in stands) or None


async def _then(call: RequestContext, run: Run, text: str) -> Run:
    """The run at a past moment, from the log; not found before it was enqueued."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or not 1970 <= at.year <= 9000:
        raise Invalid("at: write a moment with its time zone, as in 2030-01-31T09:00Z.")
    entries = await call.service.reads.all(queries.run_history(run.id, at=at))
    if not entries:
        raise not_here(run.id)
    return as_it_was(run, fold_all(entries), at)


class Filters(msgspec.Struct, frozen=True):
    """Filters of runs."""

    status: Status | None = None
    queue: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    task: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    hash: Digest | None = None
    label: Annotated[str, msgspec.Meta(max_length=600, description="`key=value`.")] | None = None
    since: Moment | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)] = PAGE
    cursor: Annotated[str, msgspec.Meta(max_length=100)] | None = None


async def list_runs(call: RequestContext) -> messages.RunPage:
    """The newest runs that match, newest first, without arguments and results."""
    asked: Filters = call.query
    found = await call.service.reads.all(
        queries.runs(
            status=asked.status,
            queue=plain(asked.queue),
            task=plain(asked.task),
            spec_hash=asked.hash,
            labels=_label(asked.label),
            queues=call.grant.queues,
            tasks=call.grant.tasks,
            before=_before(asked.cursor),
            limit=asked.limit + 1,
            since=since_of(asked.since),
        )
    )
    page, more = found[: asked.limit], len(found) > asked.limit
    return messages.RunPage(
        runs=[brief_of(run) for run in page], next=page[-1].id if more else None
    )


def _label(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    key, equals, value = str(plain(text)).partition("=")
    if not key or not equals:
        raise Invalid("label: write key=value.")
    return {key: value}


def _before(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        return str(msgspec.convert(cursor, Id))
    except msgspec.ValidationError:
        raise Invalid("cursor: send the `next` of an earlier page.") from None


# -- Change ----------------------------------------------------------------------------------------


async def cancel(call: RequestContext) -> messages.Moved:
    """Cancel a run: at once if no worker executes it, else by asking its worker."""
    run_id = call.path["id"]
    changed = await call.move(
        queries.cancel, [run_id], "cancel", lambda rows: [row.id for row in rows]
    )
    moved = changed.only
    if moved is None:
        await found_run(call)
        raise Conflict("The run has ended already.")
    return messages.Moved(id=run_id, status=Status(moved.status))


async def retry(call: RequestContext) -> messages.Moved:
    """Make a dead or a waiting run ready now, with a fresh budget of attempts."""
    moved = (await call.move(queries.retry, [call.path["id"]], "retry", list)).only
    if moved is None:
        await found_run(call)
        raise Conflict("Only failed and waiting runs are retried; replay repeats one that ended.")
    return messages.Moved(id=moved, status=Status.READY)


async def replay(call: RequestContext) -> messages.Accepted:
    """Enqueue the spec of an earlier run again, byte for byte, as a new run."""
    original = await found_run(call)
    [run_id] = call.service.context.ids(1)
    query = queries.replay(original=original.id, id=run_id)
    reply = messages.Accepted(id=run_id, spec_hash=original.spec_hash)

    def noted(made: list[str]) -> list[Query[None]]:
        return [call.audit("replay", [original.id, *made])]

    try:
        return await copied(call, query, noted, reply)
    except psycopg.errors.UniqueViolation:
        # It was sent again after a lost answer, and the first copy was accepted.
        return reply


async def signal(call: RequestContext) -> messages.Moved:
    """Send a run a signal it waits for, now or later."""
    run_id, sent = call.path["id"], call.body
    await call.check_mine(run_id)
    payload = await call.aside(lambda: check_text(_part(sent.payload, b"null")))
    [signal_id] = call.service.context.ids(1)
    query = queries.signal(run_id, signal_id, sent.event, payload)
    found = await call.change(query, "signal", lambda statuses: [run_id for _ in statuses])
    if not found:
        await found_run(call)
        raise Conflict("The run has ended already.")
    return messages.Moved(id=run_id, status=Status(found[0]))
