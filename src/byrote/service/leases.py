# SPDX-License-Identifier: MIT
"""Routes of workers: claim, renew, finish, release, and the ledgers of runs under way."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from byrote.core.artifact import POSTGRES, check_artifact
from byrote.core.codec import digest_of
from byrote.core.errors import BadPayload
from byrote.core.outcome import safe_text
from byrote.core.run import Leased
from byrote.service.bell import Line
from byrote.service.call import Call
from byrote.service.reading import lease_of, prefixed
from byrote.service.verdicts import Row, row_of, with_common
from byrote.store import artifacts, looking, queries
from byrote.store.query import Query
from byrote.store.sync import Interrupted
from byrote.wire import leases as wire
from byrote.wire.problems import Forbidden, Invalid, Unavailable

HEARD: Mapping[str, wire.HeardAs] = {
    "S": "succeeded",
    "R": "retried",
    "F": "failed",
    "C": "cancelled",
    "Z": "snoozed",
    "L": "released",
    "X": "salvaged",
}


# -- Claim -----------------------------------------------------------------------------------------


async def claim(call: Call) -> wire.Leases:
    """Lease runs to a worker; waits for one if there is none, for as long as it was asked to."""
    asked: wire.Claim = call.body
    call.grant.check(asked.queues, {task.rpartition("@")[0] for task in asked.tasks})
    token = asked.token or call.service.means.token()
    found = await _lease(call, token)
    if not found and asked.wait_s and not call.service.stopping:
        found = await _wait(call, token)
    return wire.Leases(leases=[lease_of(run) for run in found], lease_for_s=asked.lease_for_s)


async def _wait(call: Call, token: str) -> list[Leased]:
    asked: wire.Claim = call.body
    bell, clock = call.service.bell, call.service.means.clock
    if bell.waiting >= call.service.options.waiting:
        raise Unavailable("Too many claims wait here already.", retry_after_s=1)
    line: Line = (tuple(asked.queues), tuple(asked.tasks))
    found: list[Leased] = []

    async def look() -> bool:
        found.extend(await _lease(call, token))
        return bool(found)

    deadline = clock() + min(asked.wait_s, call.service.options.wait_max_s)
    while not (call.service.stopping or call.gone.done()) and (left := deadline - clock()) > 0:
        if await bell.wait(line, left, look, call.gone):
            bell.pass_on(line)
            break
    return found


async def _lease(call: Call, token: str) -> list[Leased]:
    asked: wire.Claim = call.body
    if isinstance(asked.queues, dict):
        return await _claim(call, token, asked.queues)
    found: list[Leased] = []
    for queue in asked.queues:
        if len(found) < asked.limit:
            found += await _claim(call, token, {queue: asked.limit - len(found)})
    return found


async def _claim(call: Call, token: str, quotas: Mapping[str, int]) -> list[Leased]:
    asked: wire.Claim = call.body
    query = queries.claim(
        quotas=quotas,
        tasks=asked.tasks,
        worker=asked.worker,
        token=token,
        lease_for=timedelta(seconds=asked.lease_for_s),
        floors=asked.floors,
    )
    store = call.service.work

    def audit(found: list[Leased]) -> list[Query[None]]:
        # A claim that finds nothing is nothing to note.
        ids = [run.id for run in found]
        return [call.audit("claim", ids, subject=asked.worker)] if ids else []

    try:
        return await store.ask(query, behind=audit)
    except Interrupted:
        again = queries.claimed(worker=asked.worker, token=token, deadline=0.0, claimed_at=0.0)
        return await store.all(again)


def _given(text: str | None) -> Raw | UnsetType:
    return UNSET if text is None else Raw(text.encode())


class Claimant(msgspec.Struct, frozen=True):
    """Who had claimed."""

    worker: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


async def claimed(call: Call) -> wire.Leases:
    """What a claim whose answer was lost had leased, by the token the worker had chosen."""
    worker = safe_text(call.query.worker)
    query = queries.claimed(worker=worker, token=call.path["token"], deadline=0.0, claimed_at=0.0)
    found = await call.service.work.all(query)
    mine = [run for run in found if call.grant.allows(run.queue, run.task)]
    return wire.Leases(leases=[lease_of(run) for run in mine], lease_for_s=0.0)


# -- Renew, finish, release ------------------------------------------------------------------------


class Pair(msgspec.Struct, frozen=True):
    """What proves a lease, as statements take it."""

    id: str
    token: str
    attempt: int | None = None


async def _held[T: (wire.Held, wire.Finish, wire.Step, wire.Keep)](
    call: Call, sent: Sequence[T]
) -> list[T]:
    """Those that speak of runs which are any business of the token."""
    mine = set(await call.mine(list({item.run for item in sent})))
    return [item for item in sent if item.run in mine]


async def renew(call: Call) -> wire.RenewReply:
    """Hold leases for longer; says what is lost, and what somebody wants cancelled."""
    asked: wire.Renew = call.body
    mine = await _held(call, asked.leases)
    pairs: Any = [Pair(held.run.lower(), held.token) for held in mine]
    query = queries.renew(pairs, lease_for=timedelta(seconds=asked.lease_for_s))
    found = {row.id: row.cancel for row in await call.service.work.all(query)} if mine else {}
    return wire.RenewReply(
        renewed=[wire.Renewed(run=run_id, cancel=cancel) for run_id, cancel in found.items()],
        lost=[held.run for held in asked.leases if held.run.lower() not in found],
    )


async def finish(call: Call) -> wire.FinishReply:
    """Settle attempts. Only the holder of a lease that has not run out is heard."""
    one = isinstance(call.body, wire.Finish)
    sent: Sequence[wire.Finish] = [call.body] if one else call.body
    if len({item.run.lower() for item in sent}) < len(sent):
        raise Invalid("A run is named twice; an attempt ends once.")
    mine = await _held(call, sent)
    judged = await _judged(call, mine)
    rows = [
        row_of(item, judged.get(item.run.lower()), "$" if one else f"$[{place}]")
        for place, item in enumerate(mine)
    ]
    heard = await _settle(call, rows, "finish") if rows else {}
    return _reply([item.run for item in sent], heard)


async def _judged(call: Call, sent: Sequence[wire.Finish]) -> dict[str, Leased]:
    """What must be known of the runs whose fate their workers leave to us."""
    open_cases = [
        (item.run.lower(), item.token)
        for item in sent
        if item.error is not None and (item.verdict is None or item.verdict.kind == "judge")
    ]
    if not open_cases:
        return {}
    return {run.id: run for run in await call.service.work.all(looking.held(open_cases))}


async def release(call: Call) -> wire.FinishReply:
    """Give leases back at once; costs their runs nothing."""
    sent: Sequence[wire.Held] = call.body.leases
    mine = await _held(call, sent)
    rows: list[Row] = [
        {"id": held.run.lower(), "token": held.token, "verdict": "L"} for held in mine
    ]
    heard = await _settle(call, rows, "release") if rows else {}
    return _reply([held.run for held in sent], heard)


async def _settle(call: Call, rows: Sequence[Row], action: str) -> dict[str, wire.HeardAs]:
    """What was accepted, and as what; what had been accepted earlier from the same lease, too."""
    store = call.service.work
    rows, common = with_common(rows)
    audit = call.audit(action, [row["id"] for row in rows])
    heard: dict[str, wire.HeardAs] = {}
    try:
        found = await store.ask(queries.finish(rows, provenance=common), also=[audit])
    except Interrupted:
        heard = await _already(call, rows)
        rest = [row for row in rows if row["id"] not in heard]
        query = queries.finish(rest, provenance=common)
        found = await store.all(query, also=[audit]) if rest else []
    heard |= {run_id: HEARD[letter] for run_id, letter in found}
    missing = [row for row in rows if row["id"] not in heard]
    return heard | (await _already(call, missing) if missing else {})


async def _already(call: Call, rows: Sequence[Row]) -> dict[str, wire.HeardAs]:
    pairs: Any = [Pair(row["id"], row["token"]) for row in rows]
    return dict.fromkeys(await call.service.work.all(queries.settled(pairs)), "already")


def _reply(sent: Sequence[str], heard: Mapping[str, wire.HeardAs]) -> wire.FinishReply:
    return wire.FinishReply(
        accepted=[wire.Heard(run=run_id, heard=how) for run_id, how in heard.items()],
        lost=[run_id for run_id in sent if run_id.lower() not in heard],
    )


# -- Ledgers ---------------------------------------------------------------------------------------


async def steps(call: Call) -> wire.StepsReply:
    """Write lines into the ledgers of runs under way; only their holders are heard."""
    sent: Sequence[wire.Step] = call.body.steps
    mine = await _held(call, sent)
    rows = [_step(item, f"$.steps[{place}]") for place, item in enumerate(mine)]
    audit = call.audit("step", [item.run for item in mine])
    found = await call.service.work.all(queries.step(rows), also=[audit]) if rows else []
    return wire.StepsReply(
        steps=[
            wire.NotedStep(
                run=row.id,
                sequence=row.sequence,
                open=row.open,
                result=_given(row.result_json),
                left_us=row.left_us,
            )
            for row in found
        ]
    )


def _step(item: wire.Step, path: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": item.run,
        "token": item.token,
        "sequence": item.sequence,
        "kind": item.kind,
        "name": safe_text(item.name),
        "delay_us": item.delay_us,
    }
    if (item.kind == "step") != (item.result is not UNSET):
        raise Invalid(f"{path}: a step has a result, and nothing else has.")
    if item.kind == "sleep" and item.delay_us is None:
        raise Invalid(f"{path}: a sleep has a delay_us.")
    if not isinstance(item.result, type(UNSET)):
        text = bytes(item.result)
        try:
            row |= {"result": text.decode(), "hash": digest_of(text).hex()}
        except BadPayload as error:
            raise prefixed(error, f"{path}.result") from None
    return row


async def ledgers(call: Call) -> wire.LedgersReply:
    """The ledgers of runs that the worker holds."""
    sent: Sequence[wire.Held] = call.body.leases
    mine = await _held(call, sent)
    store = call.service.work
    known = await store.all(looking.held([(item.run, item.token) for item in mine]))
    held = [run.id for run in known]
    found = await store.all(queries.steps(held)) if held else []
    return wire.LedgersReply(
        lines=[
            wire.LedgerLine(
                run=row.run_id,
                sequence=row.sequence,
                kind=row.kind,
                name=row.name,
                open=row.open,
                result=_given(row.result_json),
            )
            for row in found
        ]
    )


async def keep(call: Call) -> wire.Kept:
    """Keep a small file with a run under way; only its holder is heard."""
    asked: wire.Keep = call.body
    check_artifact(asked.name, asked.media_type)
    if not await _held(call, [asked]):
        return wire.Kept(verdict="lost")
    pair: Any = Pair(asked.run.lower(), asked.token)
    query = artifacts.artifact(
        pair,
        name=asked.name,
        digest=hashlib.sha256(asked.data).digest(),
        size=len(asked.data),
        media_type=asked.media_type,
        place=POSTGRES,
        data=asked.data,
    )
    audit = call.audit("artifact", [pair.id])
    [keeping] = await call.service.work.all(query, also=[audit])
    verdict: Any = keeping.verdict
    return wire.Kept(verdict=verdict, media_type=keeping.media_type, at=keeping.at)


# -- Workers ---------------------------------------------------------------------------------------


async def unfinished(call: Call) -> wire.UnfinishedReply:
    """Whether anything is due that this worker could claim."""
    asked: wire.Unfinished = call.body
    call.grant.check(asked.queues, {task.rpartition("@")[0] for task in asked.tasks})
    query = queries.unfinished(queues=asked.queues, tasks=asked.tasks)
    return wire.UnfinishedReply(unfinished=(await call.service.work.all(query))[0])


async def provenance(call: Call) -> wire.ProvenanceReply:
    """Give a description of what executes attempts a number to name it by."""
    doc = bytes(call.body.doc)
    if digest_of(doc).hex() != call.body.digest:
        raise Invalid("digest: it is not the SHA-256 of the document's canonical form.")
    query = queries.register_provenance(digest=call.body.digest, doc=doc.decode())
    return wire.ProvenanceReply(id=(await call.service.work.all(query))[0])


async def register(call: Call) -> wire.Known:
    """Introduce a worker."""
    asked: wire.Register = call.body
    call.grant.check(asked.queues)
    description = {
        name: safe_text(value) if isinstance(value, str) else value
        for name, value in msgspec.structs.asdict(asked).items()
    }
    audit = call.audit("register", subject=asked.worker)
    await call.service.work.all(queries.register(description), also=[audit])
    return wire.Known(known=True)


async def heartbeat(call: Call) -> wire.Known:
    """Say that a worker lives."""
    worker = await worker_of(call)
    beat: wire.Heartbeat = call.body
    query = queries.heartbeat(worker=worker, **msgspec.structs.asdict(beat))
    return wire.Known(known=bool(await call.service.work.all(query)))


async def deregister(call: Call) -> wire.Known:
    """Take a worker that stops off the list."""
    worker = await worker_of(call)
    audit = call.audit("deregister", subject=worker)
    gone = await call.service.work.all(queries.deregister(worker=worker), also=[audit])
    return wire.Known(known=bool(gone))


async def worker_of(call: Call) -> str:
    """The worker a request speaks of; one that serves queues the token is not for is foreign."""
    worker = safe_text(call.path["worker"])
    if call.grant.queues is not None:
        for row in await call.service.work.all(queries.workers()):
            if row.worker == worker and not set(row.queues) <= set(call.grant.queues):
                raise Forbidden(f"This token is not for the queues of {worker!r}.")
    return worker
