# SPDX-License-Identifier: MIT
"""The verdicts and their names on every surface, and judged attempts as stores write them.

`ENDS` is the only table of these names. Code letters, words of the HTTP API, events, kinds of the
log and statistics are all derived from it.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from byrote.core.duration import micros
from byrote.core.log.kinds import EventKind
from byrote.core.memo import Memo, memo_key
from byrote.core.outcome import Crashed, Failed, Outcome, Succeeded
from byrote.core.policy import (
    Cancel,
    Fail,
    GiveBackCrashed,
    Release,
    RetryIn,
    SnoozeFor,
    Succeed,
    Verdict,
)
from byrote.core.run import Leased

type Judged = tuple[Leased, Outcome, Verdict]


class End(msgspec.Struct, frozen=True):
    """One way an attempt can end, under its name on every surface."""

    verdict: type[Verdict]
    letter: str
    """The code in SQL parameters and in the data of the log."""
    word: str
    """The verdict's kind in a request of the HTTP API."""
    accepted_as: str
    """The reply of the HTTP API when it has stored the verdict."""
    kind: EventKind
    """The kind of the event in the log, and the name of the event that the worker emits."""
    statistic: str | None = None
    """The statistic that counts it, if there is one."""


ENDS: Final = (
    End(Succeed, "S", "succeed", "succeeded", EventKind.SUCCEEDED, "succeeded"),
    End(RetryIn, "R", "retry", "retried", EventKind.RETRIED, "retried"),
    End(Fail, "F", "fail", "failed", EventKind.FAILED, "failed"),
    End(Cancel, "C", "cancel", "cancelled", EventKind.CANCELLED, "cancelled"),
    End(SnoozeFor, "Z", "snooze", "snoozed", EventKind.SNOOZED),
    End(Release, "L", "release", "released", EventKind.RELEASED),
    End(GiveBackCrashed, "X", "crashed", "crashed", EventKind.CRASHED, "lost"),
)
"""Every way an attempt can end, one row per verdict."""

LETTERS: Final[Mapping[type, str]] = {end.verdict: end.letter for end in ENDS}
"""The code letter of each verdict."""
WORDS: Final[Mapping[type, str]] = {end.verdict: end.word for end in ENDS}
"""The word of each verdict in a request of the HTTP API."""
LETTER_OF_WORD: Final[Mapping[str, str]] = {end.word: end.letter for end in ENDS}
ACCEPTED_AS: Final[Mapping[str, str]] = {end.letter: end.accepted_as for end in ENDS}
"""The reply of the HTTP API for each code letter."""
LETTER_OF_ACCEPTED: Final[Mapping[str, str]] = {end.accepted_as: end.letter for end in ENDS}
STATISTICS: Final[Mapping[EventKind, str]] = {
    EventKind.ENQUEUED: "enqueued",
    EventKind.LOST: "lost",
    **{end.kind: end.statistic for end in ENDS if end.statistic is not None},
}
"""The statistic that each kind of event is counted in; other kinds are not counted."""


def is_bare(run: Leased, outcome: Outcome, verdict: Verdict) -> bool:
    """Whether the attempt has only a result and its usage to store."""
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
    """The attempt's number and its resource usage, or None if usage was not measured."""
    return None if outcome.usage is None else {"attempt": run.attempt, **outcome.usage}


def row_of(run: Leased, outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    """Returns a judged attempt as plain data, as finish.sql reads it."""
    row: dict[str, Any] = {
        "id": run.id,
        "token": run.token,
        "attempt": run.attempt,
        "verdict": LETTERS[type(verdict)],
    }
    match outcome:
        case Succeeded(text=text, digest=digest):
            row["result"], row["hash"] = text, digest
        case Failed(fault=fault) | Crashed(fault=fault):
            row["error"] = msgspec.to_builtins(fault)
    if outcome.output is not None:
        row["output"] = msgspec.to_builtins(outcome.output)
    if (usage := usage_of(run, outcome)) is not None:
        row["more"] = {"usage": usage}
    if isinstance(verdict, Succeed) and (memo := _memo(run)) is not None:
        key = memo_key(memo.code, run.spec_json)
        stored = {"spec": run.spec_hash.hex(), "code": key, "keep_us": memo.keep_us}
        row["more"] = {**row.get("more", {}), "memo": stored}
    if isinstance(verdict, RetryIn | SnoozeFor):
        row["delay_us"] = micros(verdict.delay)
    if isinstance(verdict, SnoozeFor) and verdict.wait is not None:
        row["wait"], row["event"] = verdict.wait, verdict.event
    return row
