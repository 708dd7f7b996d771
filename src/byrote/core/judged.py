# SPDX-License-Identifier: MIT
"""An attempt that has ended and been judged, and how stores write that down."""

from typing import Any

import msgspec

from byrote.core.duration import micros
from byrote.core.outcome import Disrupted, Failed, Outcome, Succeeded
from byrote.core.policy import (
    Cancel,
    Fail,
    Release,
    RetryIn,
    Salvage,
    SnoozeFor,
    Succeed,
    Verdict,
)
from byrote.core.run import Leased

type Judged = tuple[Leased, Outcome, Verdict]

LETTERS: dict[type, str] = {
    Succeed: "S",
    RetryIn: "R",
    Fail: "F",
    Cancel: "C",
    SnoozeFor: "Z",
    Release: "L",
    Salvage: "X",
}
"""What each verdict is called in a store."""


def row_of(run: Leased, outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    """A judged attempt as plain data, as finish.sql reads it."""
    row: dict[str, Any] = {
        "id": run.id,
        "token": run.token,
        "attempt": run.attempt,
        "verdict": LETTERS[type(verdict)],
    }
    match outcome:
        case Succeeded(text=text, digest=digest):
            row["result"], row["hash"] = text, digest
        case Failed(fault=fault) | Disrupted(fault=fault):
            row["error"] = msgspec.to_builtins(fault)
    if outcome.output is not None:
        row["output"] = msgspec.to_builtins(outcome.output)
    if outcome.usage is not None:
        row["more"] = {"usage": {"attempt": run.attempt, **outcome.usage}}
    if run.provenance is not None and run.provenance.memos and isinstance(verdict, Succeed):
        memo = run.provenance.memos.get(f"{run.task}@{run.version}")
        if memo is not None:
            kept = {"spec": run.spec_hash.hex(), "code": memo.code, "keep_us": memo.keep_us}
            row["more"] = {**row.get("more", {}), "memo": kept}
    if isinstance(verdict, RetryIn | SnoozeFor):
        row["delay_us"] = micros(verdict.delay)
    if isinstance(verdict, SnoozeFor) and verdict.wait is not None:
        row["wait"], row["event"] = verdict.wait, verdict.event
    return row
