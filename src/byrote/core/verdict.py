# SPDX-License-Identifier: MIT
"""An attempt that has ended and been judged, and how stores write that down."""

from typing import Any

import msgspec

from byrote.core.duration import micros
from byrote.core.memo import Memo, memo_key
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


def is_bare(run: Leased, outcome: Outcome, verdict: Verdict) -> bool:
    """Whether there is a result to write down, what it took, and nothing else."""
    return (
        type(verdict) is Succeed
        and type(outcome) is Succeeded
        and outcome.output is None
        and _memo(run) is None
    )


def _memo(run: Leased) -> Memo | None:
    found = run.provenance
    if found is None or not found.memos:
        return None
    return found.memos.get(f"{run.task}@{run.version}")


def usage_of(run: Leased, outcome: Outcome) -> dict[str, int] | None:
    """What the attempt used, if that is known, with its number."""
    return None if outcome.usage is None else {"attempt": run.attempt, **outcome.usage}


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
    if (usage := usage_of(run, outcome)) is not None:
        row["more"] = {"usage": usage}
    if isinstance(verdict, Succeed) and (memo := _memo(run)) is not None:
        key = memo_key(memo.code, run.spec_json)
        kept = {"spec": run.spec_hash.hex(), "code": key, "keep_us": memo.keep_us}
        row["more"] = {**row.get("more", {}), "memo": kept}
    if isinstance(verdict, RetryIn | SnoozeFor):
        row["delay_us"] = micros(verdict.delay)
    if isinstance(verdict, SnoozeFor) and verdict.wait is not None:
        row["wait"], row["event"] = verdict.wait, verdict.event
    return row
