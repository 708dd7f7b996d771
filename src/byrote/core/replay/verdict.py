# SPDX-License-Identifier: MIT
"""Verdicts on a verified replay: same, differs, or not replayable.

For a run that succeeded, the canonical form of the result is compared, by its hash. For one that
failed, only the class path and the message of the last error are: tracebacks contain line numbers,
which change.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, Literal

import msgspec

from byrote.core.errors import BadPayload
from byrote.core.json.codec import digest_of, pack, unpack
from byrote.core.json.diff import CHANGES_MAX, Change, Changes, diff
from byrote.core.json.paths import ERROR, Path, without
from byrote.core.ports.replies import StepRow
from byrote.core.replay.compare import ProvenanceDoc
from byrote.core.replay.provenance import provenance_diff
from byrote.core.replay.withholding import WithheldCall, aligned, withheld_id
from byrote.core.run import Run
from byrote.core.state import FINAL, Status

type Why = Literal[
    "unknown_task", "unknown_version", "steps", "expired", "altered", "unfinished", "cancelled",
    "lost", "shadow",
]  # fmt: skip
"""Why a run cannot be compared with a replay of it."""

NOTHING: Final = Changes([])
HIDDEN: Final = "(hidden)"
"""Replaces a value that must not be shown."""
STEP_FAULTS: Final = frozenset({"nondeterminism", "not_recorded"})
"""Kinds of faults of a replay that called other steps than the recorded ones."""


class Same(msgspec.Struct, frozen=True, kw_only=True, tag="same", tag_field="verdict"):
    """The replay ended as the original did."""

    original: str
    """The id of the run that was repeated."""
    replay: str
    """The id of the shadow run."""
    task: str
    """Its name and version."""
    hash: str
    """The hash of the compared value, without the ignored parts."""
    provenance: Changes = NOTHING
    """Differences between the environments; they did not change the outcome."""
    withheld: Sequence[WithheldCall] = ()
    """Calls of the replay that were not sent."""
    memo_of: str | None = None
    """The run that computed the reused result of the original; that run was replayed."""


class Differs(msgspec.Struct, frozen=True, kw_only=True, tag="differs", tag_field="verdict"):
    """The replay and the original ended differently."""

    original: str
    """The id of the run that was repeated."""
    replay: str
    """The id of the shadow run."""
    task: str
    """Its name and version."""
    status: tuple[Status, Status]
    """How the original ended and how the replay did."""
    result: Changes
    """Where the results differ; of runs that failed, where `type` and `message` of the errors do;
    where only one failed, /result and /error."""
    artifacts: Changes = NOTHING
    """Artifacts by name whose hashes differ from the recorded ones."""
    steps: Changes = NOTHING
    """Recorded steps, by number, that the replay had not reached when it failed, or that it would
    have called with other arguments."""
    provenance: Changes = NOTHING
    """Differences between the environments."""
    withheld: Sequence[WithheldCall] = ()
    """Calls of the replay that were not sent."""
    memo_of: str | None = None
    """The run that computed the reused result of the original; that run was replayed."""


class NotReplayable(
    msgspec.Struct, frozen=True, kw_only=True, tag="not replayable", tag_field="verdict"
):
    """The run and its replay cannot be compared."""

    original: str
    """The id of the run, or its spec hash."""
    replay: str | None = None
    """The id of the shadow run, if one was enqueued."""
    task: str | None
    """Its name and version, if they are known."""
    why: Why
    """The reason in one word, for programs."""
    reason: str
    """The reason in a sentence, with what to do."""
    memo_of: str | None = None
    """The run that computed the reused result of the original; that run was replayed."""


type Replayed = Same | Differs | NotReplayable
"""The verdict on a replay."""


def obstacle(run: Run, known: Collection[str]) -> NotReplayable | None:
    """Returns why a run cannot be replayed with these tasks (`name@version`), or None."""
    found = _about_record(run) or _about_task(run, known)
    if found is None:
        return None
    why, reason = found
    return NotReplayable(original=run.id, task=key_of(run), why=why, reason=reason)


def key_of(run: Run) -> str:
    """A run's task and version."""
    return f"{run.task}@{run.version}"


def _about_record(run: Run) -> tuple[Why, str] | None:  # noqa: PLR0911 -- one return per reason.
    if run.shadow:
        return "shadow", f"It is itself a shadow of run {run.replay_of}; replay that one."
    if run.status not in FINAL:
        return "unfinished", f"It is {run.status} and has no outcome to compare with yet."
    if run.status is Status.CANCELLED:
        return "cancelled", "It was cancelled before it had an outcome."
    if not is_sound(run):
        return "altered", "Its stored spec is not the one it was accepted with: the hash differs."
    if run.status is Status.SUCCESSFUL:
        return _about_result(run)
    if _kind(run) in (None, "lost"):
        return "lost", "It ended because its workers were lost; no outcome of the task is known."
    return None


def _about_result(run: Run) -> tuple[Why, str] | None:
    if run.result_json is None or run.result_hash is None:
        return "expired", "Its result is no longer stored."
    if _hash(run.result_json) != run.result_hash:
        return "altered", "Its stored result is not the one that was recorded: the hash differs."
    return None


def is_sound(run: Run) -> bool:
    """Whether the stored spec matches its hash and names the task of its run."""
    if _hash(run.spec_json) != run.spec_hash:
        return False
    match unpack(run.spec_json):
        case {"task": run.task, "version": run.version}:
            return True
        case _:
            return False


def _hash(text: str) -> str | None:
    try:
        return digest_of(text).hex()
    except BadPayload:
        return None


def _about_task(run: Run, known: Collection[str]) -> tuple[Why, str] | None:
    if key_of(run) in known:
        return None
    versions = sorted(key for key in known if key.rpartition("@")[0] == run.task)
    if versions:
        return "unknown_version", (
            f"The app has no version {run.version} of {run.task}, only {', '.join(versions)}."
        )
    some = ", ".join(sorted(known)[:10]) or "none"
    return "unknown_task", f"The app has no task {run.task}; it has {some}."


def judge_replay(
    original: Run,
    shadow: Run,
    *,
    ignore: Sequence[Path] = (),
    artifacts: Changes = NOTHING,
    steps: Sequence[StepRow] = (),
    arguments: Sequence[Change] = (),
    withheld: Sequence[WithheldCall] = (),
    provenances: tuple[ProvenanceDoc, ProvenanceDoc] = (None, None),
) -> Replayed:
    """Compare a run with its shadow, which has ended; the same two always get the same verdict.

    `steps` is the original's ledger; it is needed only if the shadow failed. `arguments`
    are the steps that the shadow would have called with other arguments than the original.
    """
    who = {"original": original.id, "replay": shadow.id, "task": key_of(original)}
    if shadow.status is Status.CANCELLED:
        return NotReplayable(**who, why="cancelled", reason="The replay was cancelled.")
    fault = shadow.faults[-1] if shadow.status is Status.FAILED else {}
    if fault.get("kind") == "lost":
        return NotReplayable(**who, why="lost", reason="The replay was lost with its worker.")
    if fault.get("kind") in STEP_FAULTS and fault["kind"] != _kind(original):
        return NotReplayable(**who, why="steps", reason=str(fault.get("message")))
    views = _view(original, ignore), _view(shadow, ignore)
    views = views[0], aligned(*views, _withheld_ids(original, withheld))
    hashes = [pack(view).digest.hex() for view in views]
    docs = provenance_diff(*provenances, task=key_of(original)) if all(provenances) else NOTHING
    missed = _missed(original, fault.get("met"), steps)
    missed = Changes([*arguments, *missed.changes][:CHANGES_MAX], cut=missed.cut)
    alike = hashes[0] == hashes[1] and original.status is shadow.status
    if alike and not artifacts and not missed:
        return Same(**who, hash=hashes[0], provenance=docs, withheld=withheld)
    return Differs(
        **who,
        status=(original.status, shadow.status),
        result=_changes(original, shadow, views),
        artifacts=artifacts,
        steps=missed,
        provenance=docs,
        withheld=withheld,
    )


def _withheld_ids(original: Run, withheld: Sequence[WithheldCall]) -> list[str]:
    count = sum(one.count for one in withheld if one.call == "enqueue")
    return [withheld_id(original.id, number) for number in range(count)]


def hide_values(verdict: Replayed) -> Replayed:
    """Returns the verdict with paths and kinds of differences only, without any values."""
    if not isinstance(verdict, Differs):
        return verdict
    hidden = [
        Change(
            change.path,
            change.kind,
            None if change.kind == "added" else HIDDEN,
            None if change.kind == "removed" else HIDDEN,
        )
        for change in verdict.result.changes
    ]
    return msgspec.structs.replace(verdict, result=Changes(hidden, cut=verdict.result.cut))


def _missed(original: Run, met: list[int] | None, steps: Sequence[StepRow]) -> Changes:
    """Finished steps of the original that the replay did not reach; none if that is unknown."""
    # An earlier attempt of a failed run may have reached more steps than its last one.
    failed = original.status is Status.FAILED
    left = [
        step
        for step in steps
        if met is not None and step.sequence not in met and not step.open
        if step.kind != "raised"
        if not failed or step.attempt == original.attempts
    ]
    found = [Change(f"/{step.sequence}", "removed", _spoken(step)) for step in left]
    return Changes(found[:CHANGES_MAX], cut=len(found) > CHANGES_MAX)


def _spoken(step: StepRow) -> str:
    return step.kind if step.kind == step.name else f"{step.kind} {step.name!r}"


def _kind(run: Run) -> str | None:
    return run.faults[-1].get("kind") if run.status is Status.FAILED and run.faults else None


def _view(run: Run, ignore: Sequence[Path]) -> Any:
    """The compared part of a run's outcome."""
    if run.status is Status.SUCCESSFUL:
        return without(run.result, [path for path in ignore if path[0] is not ERROR])
    last = run.faults[-1]
    error = {name: last.get(name) for name in ("type", "message")}
    return without(error, [path[1:] for path in ignore if path[0] is ERROR])


def _changes(original: Run, shadow: Run, views: tuple[Any, Any]) -> Changes:
    if original.status is shadow.status:
        return diff(*views)
    names = ["error" if run.status is Status.FAILED else "result" for run in (original, shadow)]
    return diff({names[0]: views[0]}, {names[1]: views[1]})
