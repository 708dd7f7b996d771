# SPDX-License-Identifier: MIT
"""Finishes attempts of remote workers: around locked rows, and once if an answer is lost."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from byrote.core.ports.script import arun_script
from byrote.core.verdict import ACCEPTED_AS
from byrote.service.http.request import RequestContext
from byrote.service.verdicts import Row, with_common
from byrote.store import queries
from byrote.store.locks import LockScript
from byrote.store.query import Query
from byrote.store.runners.sync import Interrupted
from byrote.wire import leases as wire


class Pair(msgspec.Struct, frozen=True):
    """Run and token of a lease, as statements take them."""

    id: str
    token: str
    attempt: int | None = None


async def held_by[T: (wire.Held, wire.Finish, wire.Step, wire.Keep)](
    call: RequestContext, sent: Sequence[T]
) -> dict[int, T]:
    """Return the items whose runs the token may access, by their index."""
    mine = set(await call.mine(list({item.run for item in sent})))
    return {index: item for index, item in enumerate(sent) if item.run in mine}


async def write_ends(
    call: RequestContext, rows: Sequence[Row], action: str
) -> dict[str, wire.AcceptedAs | None]:
    """Write ends; returns how each was accepted, also by an earlier copy; None if locked."""
    store = call.service.work
    rows, common = with_common(rows)
    noted = call.noted(action, _accepted_ids)
    accepted: dict[str, wire.AcceptedAs | None] = {}

    def around(some: Sequence[Row]) -> LockScript:
        return call.service.detour.around(
            {row["id"]: row for row in some}, lambda sent: queries.finish(sent, provenance=common)
        )

    def behind(query: Query[Any]) -> Any:
        # The others look for locked rows and change nothing.
        return noted if query.yields else None

    try:
        found = await arun_script(
            around(rows), lambda query: store.ask(query, behind=behind(query))
        )
    except Interrupted:
        accepted |= await _already(call, rows)
        rest = [row for row in rows if row["id"] not in accepted]
        found = await arun_script(
            around(rest), lambda query: store.all(query, behind=behind(query))
        )
    accepted |= {run_id: _accepted_as(letter) for run_id, letter in found.items()}
    missing = [row for row in rows if row["id"] not in accepted]
    return accepted | (await _already(call, missing) if missing else {})


def _accepted_ids(found: Sequence[tuple[str, str]]) -> list[str]:
    return [run_id for run_id, _ in found]


def _accepted_as(letter: str) -> wire.AcceptedAs | None:
    """The reply for a code letter; None for LOCKED, which is not one."""
    return cast("wire.AcceptedAs | None", ACCEPTED_AS.get(letter))


async def _already(call: RequestContext, rows: Sequence[Row]) -> dict[str, wire.AcceptedAs | None]:
    pairs: Any = [Pair(row["id"], row["token"]) for row in rows]
    found = await call.service.work.all(queries.finished_leases(pairs))
    return dict.fromkeys((run_id for run_id, _ in found), "already")


def reply_of(
    sent: Sequence[str], accepted: Mapping[str, wire.AcceptedAs | None]
) -> wire.FinishReply:
    """The reply to these runs: what was accepted, what is lost and what is locked."""
    return wire.FinishReply(
        accepted=[
            wire.AcceptedAttempt(run=run_id, accepted_as=how)
            for run_id, how in accepted.items()
            if how
        ],
        lost=[run_id for run_id in sent if run_id not in accepted],
        locked=[run_id for run_id, how in accepted.items() if how is None] or UNSET,
    )
