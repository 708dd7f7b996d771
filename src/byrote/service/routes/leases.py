# SPDX-License-Identifier: MIT
"""Routes of workers: claim, renew, finish, release, and the ledgers of runs under way."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

import msgspec
from msgspec import UNSET

from byrote.core.json.codec import digest_of
from byrote.core.outcome import safe_text
from byrote.core.ports.replies import LOCKED
from byrote.core.ports.script import arun_script
from byrote.core.run import Leased
from byrote.service.ends import Pair, held_by, reply_of, write_ends
from byrote.service.http.decoding import check_once, lease_of
from byrote.service.http.request import RequestContext
from byrote.service.verdicts import Row, row_of
from byrote.service.waiting.claims import ClaimKey
from byrote.store import queries
from byrote.store.query import Query
from byrote.store.runners.sync import Interrupted
from byrote.wire import leases as wire
from byrote.wire.problems import Invalid

# -- Claim -----------------------------------------------------------------------------------------


async def claim(call: RequestContext) -> wire.Leases:
    """Lease runs to a worker; waits for one if there is none, for as long as requested."""
    asked: wire.Claim = call.body
    call.grant.check(asked.queues, {task.rpartition("@")[0] for task in asked.tasks})
    token = asked.token or call.service.context.token()
    found = await _lease(call, token)
    if not found and asked.wait_s and not call.service.stopping:
        found = await _wait(call, token)
    return wire.Leases(leases=[lease_of(run) for run in found], lease_for_s=asked.lease_for_s)


async def _wait(call: RequestContext, token: str) -> list[Leased]:
    asked: wire.Claim = call.body
    claim_waiters, clock = call.service.claim_waiters, call.service.context.clock
    key: ClaimKey = (tuple(asked.queues), tuple(asked.tasks))
    found: list[Leased] = []

    async def look() -> bool:
        await call.confirm()  # A token that has ended gets no lease.
        found.extend(await _lease(call, token))
        return bool(found)

    deadline = clock() + min(asked.wait_s, call.service.options.wait_max_s)
    with call.waits():
        while not (call.service.stopping or call.gone.done()) and (left := deadline - clock()) > 0:
            if await claim_waiters.wait(key, left, look, call.gone):
                claim_waiters.pass_on(key)
                break
    if not found:
        await call.confirm()
    return found


async def _lease(call: RequestContext, token: str) -> list[Leased]:
    asked: wire.Claim = call.body
    if isinstance(asked.queues, dict):
        return await _claim(call, token, asked.queues)
    found: dict[str, Leased] = {}
    for queue in asked.queues:
        if len(found) < asked.limit:
            quotas = {queue: asked.limit - len(found)}
            found |= {run.id: run for run in await _claim(call, token, quotas, found)}
    return list(found.values())


async def _claim(
    call: RequestContext, token: str, quotas: Mapping[str, int], found: Collection[str] = ()
) -> list[Leased]:
    """Lease runs; `found` are those that the token has leased before."""
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
        # A claim that finds nothing is not audited.
        ids = [run.id for run in found]
        return [call.audit("claim", ids, subject=asked.worker)] if ids else []

    try:
        return await store.ask(query, behind=audit)
    except Interrupted:
        again = queries.claimed(worker=asked.worker, token=token, deadline=0.0, claimed_at=0.0)
        leased = [run for run in await store.all(again) if run.id not in found]
        # If it has leased nothing, it no longer can: it may be sent again.
        return leased or await store.ask(query, behind=audit)


class Claimant(msgspec.Struct, frozen=True):
    """The worker of a claim."""

    worker: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


async def claimed(call: RequestContext) -> wire.Leases:
    """The leases of a claim whose answer was lost, by the token the worker had chosen."""
    worker = safe_text(call.query.worker)
    query = queries.claimed(worker=worker, token=call.path["token"], deadline=0.0, claimed_at=0.0)
    found = await call.service.work.all(query)
    mine = [run for run in found if call.grant.allows(run.queue, run.task)]
    return wire.Leases(leases=[lease_of(run) for run in mine], lease_for_s=0.0)


# -- Renew, finish, release ------------------------------------------------------------------------


async def renew(call: RequestContext) -> wire.RenewReply:
    """Extend leases; the reply lists those that are lost, locked, or to be cancelled."""
    asked: wire.Renew = call.body
    check_once((held.run for held in asked.leases), "$.leases", "The run")
    mine = await held_by(call, asked.leases)
    pairs: Any = [Pair(held.run, held.token) for held in mine.values()]
    lease_for = timedelta(seconds=asked.lease_for_s)
    asking = call.service.detour.around(
        {pair.id: pair for pair in pairs}, lambda some: queries.renew(some, lease_for=lease_for)
    )
    found = await arun_script(asking, call.service.work.all)
    return wire.RenewReply(
        renewed=[wire.Renewed(run=key, cancel=it) for key, it in found.items() if it != LOCKED],
        lost=[held.run for held in asked.leases if held.run not in found],
        locked=[run_id for run_id, cancel in found.items() if cancel == LOCKED] or UNSET,
    )


async def finish(call: RequestContext) -> wire.FinishReply:
    """Finish attempts. Only the holder of an unexpired lease can finish its attempt."""
    one = isinstance(call.body, wire.Finish)
    sent: Sequence[wire.Finish] = [call.body] if one else call.body
    check_once((item.run for item in sent), "$", "The run")
    mine = await held_by(call, sent)
    await _check_provenance(call, sent)
    judged = await _judged(call, list(mine.values()))
    rows = await call.aside(
        lambda: [
            row_of(item, judged.get(item.run), "$" if one else f"$[{index}]")
            for index, item in mine.items()
        ]
    )
    accepted = await write_ends(call, rows, "finish") if rows else {}
    return reply_of([item.run for item in sent], accepted)


async def _check_provenance(call: RequestContext, sent: Sequence[wire.Finish]) -> None:
    """Refuse numbers that no environment has; those that exist are cached."""
    known = call.service.provenances
    if asked := {item.provenance for item in sent if item.provenance} - known:
        found = await call.service.work.all(queries.provenances(sorted(asked)))
        known |= {environment.id for environment in found}
        for index, item in enumerate(sent):
            if item.provenance and item.provenance not in known:
                raise Invalid(
                    f"$[{index}].provenance: there is no {item.provenance}; "
                    "send the number that POST /v1/provenance answers."
                )


async def _judged(call: RequestContext, sent: Sequence[wire.Finish]) -> dict[str, Leased]:
    """Return the facts needed to judge runs whose workers sent no verdict."""
    open_cases = [
        (item.run, item.token)
        for item in sent
        if item.error is not None and (item.verdict is None or item.verdict.kind == "judge")
    ]
    if not open_cases:
        return {}
    return {run.id: run for run in await call.service.work.all(queries.leased_runs(open_cases))}


async def release(call: RequestContext) -> wire.FinishReply:
    """Release leases at once; the attempts do not count."""
    sent: Sequence[wire.Held] = call.body.leases
    check_once((held.run for held in sent), "$.leases", "The run")
    mine = await held_by(call, sent)
    rows: list[Row] = [
        {"id": held.run, "token": held.token, "verdict": "L"} for held in mine.values()
    ]
    accepted = await write_ends(call, rows, "release") if rows else {}
    return reply_of([held.run for held in sent], accepted)


# -- Environments ----------------------------------------------------------------------------------


async def unfinished(call: RequestContext) -> wire.UnfinishedReply:
    """The number of runs left in the queues of a worker that drains them."""
    asked: wire.Unfinished = call.body
    call.grant.check(asked.queues, {task.rpartition("@")[0] for task in asked.tasks})
    query = queries.unfinished(queues=asked.queues, tasks=asked.tasks)
    [left] = await call.service.work.all(query)
    return wire.UnfinishedReply(
        unfinished=left.due,
        elsewhere=left.elsewhere,
        unknown=left.unknown,
        paused=left.paused,
        later=left.later,
    )


async def provenance(call: RequestContext) -> wire.ProvenanceReply:
    """Store a description of an environment, and return its number."""
    doc = bytes(call.body.doc)
    if (await call.aside(lambda: digest_of(doc))).hex() != call.body.digest:
        raise Invalid("digest: it is not the SHA-256 of the document's canonical form.")
    query = queries.register_provenance(digest=call.body.digest, doc=doc.decode())
    # The row has, beside the number, whether it is new.
    with_new: Query[tuple[int, bool]] = Query(query.name, query.args, lambda row: (row[0], row[1]))
    digest = call.body.digest

    def changed(found: list[tuple[int, bool]]) -> list[str]:
        return [digest for _, made in found if made]

    [(number, _)] = await call.change(with_new, "provenance", changed, subject=digest)
    return wire.ProvenanceReply(id=number)
