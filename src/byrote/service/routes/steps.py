# SPDX-License-Identifier: MIT
"""Routes of the ledgers of runs under way."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType

from byrote.core.errors import BadPayload, PayloadTooLarge
from byrote.core.json.codec import PAYLOAD_MAX, digest_of
from byrote.core.outcome import safe_text
from byrote.core.ports.replies import StepReply
from byrote.service.ends import held_by
from byrote.service.http.decoding import check_once, prefixed
from byrote.service.http.request import RequestContext
from byrote.store import locks, queries
from byrote.wire import leases as wire
from byrote.wire.problems import Invalid


async def steps(call: RequestContext) -> wire.StepsReply:
    """Write entries into the ledgers of running runs; only lease holders can write."""
    sent: Sequence[wire.Step] = call.body.steps
    check_once(((item.run, item.sequence) for item in sent), "$.steps", "The step")
    mine = await held_by(call, sent)
    rows = await call.aside(
        lambda: [_step(item, f"$.steps[{index}]") for index, item in mine.items()]
    )
    query = queries.step(rows)
    found = await call.change(query, "step", _runs_written) if rows else []
    written = {(row.id, row.sequence) for row in found}
    missing = [row for row in rows if (row["id"], row["sequence"]) not in written]
    locked = await call.service.work.all(locks.holding(missing)) if missing else []
    return wire.StepsReply(
        locked=sorted(set(locked)) or UNSET,
        steps=[
            wire.NotedStep(
                run=row.id,
                sequence=row.sequence,
                open=row.open,
                result=_given(row.result_json),
                left_us=row.left_us,
            )
            for row in found
        ],
    )


def _runs_written(noted: Sequence[StepReply]) -> list[str]:
    return list(dict.fromkeys(row.id for row in noted if row.written))


def _step(item: wire.Step, path: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": item.run,
        "token": item.token,
        "sequence": item.sequence,
        "kind": item.kind,
        "name": safe_text(item.name),
        "delay_us": item.delay_us,
        "place": None if item.place is None else safe_text(item.place),
        "args_hash": item.args_hash,
    }
    if (item.kind in {"step", "raised", "failed"}) != (item.result is not UNSET):
        raise Invalid(f"{path}: a step has a result, and nothing else has.")
    if item.kind == "sleep" and item.delay_us is None:
        raise Invalid(f"{path}: a sleep has a delay_us.")
    if not isinstance(item.result, type(UNSET)):
        text = bytes(item.result)
        if len(text) > PAYLOAD_MAX:
            raise PayloadTooLarge(len(text), PAYLOAD_MAX)
        try:
            row |= {"result": text.decode(), "hash": digest_of(text).hex()}
        except BadPayload as error:
            raise prefixed(error, f"{path}.result") from None
    return row


async def ledgers(call: RequestContext) -> wire.LedgersReply:
    """The ledgers of runs that the worker holds."""
    sent: Sequence[wire.Held] = call.body.leases
    check_once((held.run for held in sent), "$.leases", "The run")
    mine = await held_by(call, sent)
    store = call.service.work
    known = await store.all(queries.leased_runs([(item.run, item.token) for item in mine.values()]))
    held = [run.id for run in known]
    found = await store.all(queries.steps(held)) if held else []
    return wire.LedgersReply(
        entries=[
            wire.LedgerStep(
                run=row.run_id,
                sequence=row.sequence,
                kind=row.kind,
                name=row.name,
                open=row.open,
                result=_given(row.result_json),
                place=row.place,
                args_hash=row.args_hash,
            )
            for row in found
            if row.kind != "raised"
        ]
    )


def _given(text: str | None) -> Raw | UnsetType:
    return UNSET if text is None else Raw(text.encode())
